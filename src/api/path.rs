//! Ids in paths.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use uuid::Uuid;

use super::ApiState;
use super::outbox::Outbox;
use super::problem::{Answer, Problem};
use super::query::parse_uuid;
use crate::event::EventId;
use crate::processor::DEFAULT_OUTBOX;

/// Characters of an event's id.
const MAX_ID_CHARS: usize = 255;

/// Extracts the event's id of a path, as the outbox of the request reads it.
pub(super) struct PathId(pub EventId);

/// Extracts the one UUID of a path.
pub(super) struct PathUuid(pub Uuid);

impl FromRequestParts<ApiState> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let outbox = Outbox::from_request_parts(parts, state).await?;
        let text = only_parameter(parts, state).await?;
        let count = text.chars().count();
        let may_be_one = (1..=MAX_ID_CHARS).contains(&count) && !text.chars().any(char::is_control);
        let id = if may_be_one { outbox.store().parse_id(&text) } else { None };
        id.map(PathId).ok_or_else(|| if outbox.outbox() == DEFAULT_OUTBOX { no_uuid() } else { no_id() })
    }
}

impl FromRequestParts<ApiState> for PathUuid {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let text = only_parameter(parts, state).await?;
        parse_uuid(&text).map(PathUuid).ok_or_else(no_uuid)
    }
}

async fn only_parameter(parts: &mut Parts, state: &ApiState) -> Answer<String> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    let params = params.map_err(|_| Problem::invalid("the path is not UTF-8"))?;
    Ok(params.iter().next().map(|(_, text)| text.to_owned()).unwrap_or_default())
}

fn no_uuid() -> Problem {
    Problem::invalid("the id in the path must be a UUID in its form with hyphens")
}

fn no_id() -> Problem {
    Problem::invalid("the id in the path can be none of this outbox: its table has ids of another type")
}
