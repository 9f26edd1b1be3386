//! Ids in paths.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use super::problem::Problem;
use super::query::parse_uuid;
use crate::event::EventId;

/// Extracts the one UUID of a path.
pub(super) struct PathId(pub EventId);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| Problem::invalid("the path is not UTF-8"))?;
        let id = params.iter().next().and_then(|(_, text)| parse_uuid(text));
        id.map(|id| PathId(id.into()))
            .ok_or_else(|| Problem::invalid("the id in the path must be a UUID in its form with hyphens"))
    }
}
