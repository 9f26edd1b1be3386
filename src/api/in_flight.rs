//! Whether something about a subject, or with a value in its payload, is still on its way.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::problem_set;
use super::outbox::Outbox;
use super::problem::{Answer, Problem};
use super::query::{FromQuery, Query, QueryReader};
use crate::event::{EventId, MAX_SUBJECT_CHARS};
use crate::store::InFlightKey;

problem_set!(InFlightProblems: Plain);

/// Characters of a payload's key or value that may be asked for.
const MAX_KEY_CHARS: usize = 255;

/// What is asked for.
pub(super) struct InFlightQuery {
    types: Vec<String>,
    key: InFlightKey,
}

impl FromQuery for InFlightQuery {
    fn from_query(query: &mut QueryReader) -> Answer<Self> {
        let types = query.types("type")?;
        let subject = query.text("subject", MAX_SUBJECT_CHARS)?;
        let (key, value) = (query.text("key", MAX_KEY_CHARS)?, query.text("value", MAX_KEY_CHARS)?);
        let key = match (subject, key, value) {
            (Some(subject), None, None) => InFlightKey::Subject(subject),
            (None, Some(key), Some(value)) => InFlightKey::Payload { key, value },
            _ => return Err(Problem::invalid("either `subject`, or `key` and `value`, must be given")),
        };
        Ok(Self { types, key })
    }
}

/// Events that are still on their way.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InFlight)]
pub(super) struct InFlightView {
    /// Whether there is one.
    in_flight: bool,
    /// At most ten of them.
    #[schema(max_items = 10)]
    #[schema(value_type = Vec<String>)]
    event_ids: Vec<EventId>,
}

/// Find pending and processing events by subject, or by a value in their payload.
#[utoipa::path(
    get, path = "/v1/events/in-flight", tag = "events", operation_id = "eventsInFlight",
    params(
        ("type" = Option<Vec<String>>, Query, description = "Only these types; may be repeated."),
        ("subject" = Option<String>, Query, max_length = 255, description = "Events of this subject.",
            example = "invoice/42"),
        ("key" = Option<String>, Query, max_length = 255, description = "Events whose payload has this key …"),
        ("value" = Option<String>, Query, max_length = 255, description = "… with this value, as text."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    responses((status = 200, description = "What was found.", body = InFlightView), InFlightProblems)
)]
pub(super) async fn read(Query(query): Query<InFlightQuery>, outbox: Outbox) -> Answer<Json<InFlightView>> {
    let event_ids = outbox.store().in_flight(&query.types, &query.key).await?;
    Ok(Json(InFlightView { in_flight: !event_ids.is_empty(), event_ids }))
}
