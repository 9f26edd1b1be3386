//! Process one event by its id, right after its commit.

use std::time::Duration;

use axum::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::auth::{Caller, Scope};
use super::body::OptionalJson;
use super::event_view::EventView;
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::path::PathId;
use super::problem::{Answer, Problem};
use super::query::{FromQuery, Query, QueryReader};
use super::whole;

problem_set!(ProcessEventProblems: WithBody, EventNotFound, ShuttingDown);

const DEFAULT_WAIT_MS: u64 = 30_000;
const MAX_WAIT_MS: u64 = 840_000;

/// How long to wait, from the query.
pub(super) struct Wait(Option<u64>);

impl FromQuery for Wait {
    fn from_query(query: &mut QueryReader) -> Answer<Self> {
        query.number("wait_ms", 0..=MAX_WAIT_MS).map(Self)
    }
}

/// How long to wait, from the body.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ProcessEvent)]
pub(super) struct WaitBody {
    /// How long to wait for the outcome; 30000 when it is not given.
    #[schema(maximum = 840_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    wait_ms: Option<u64>,
}

/// What became of an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProcessedEvent)]
pub(super) struct ProcessedView {
    /// The word for it.
    #[schema(schema_with = outcome_schema)]
    outcome: &'static str,
    /// Why the event was left as it is, when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    reason: Option<String>,
    /// The event as it is now.
    event: EventView,
}

fn outcome_schema() -> Object {
    let words = ["completed", "pending", "processing", "skipped", "dead_letter", "lease_lost"];
    let description = "What the event has become; `processing` when it is in a handler's hands, here or elsewhere.";
    ObjectBuilder::new().schema_type(Type::String).description(Some(description)).enum_values(Some(words)).build()
}

/// Process one event now, if it is due, and wait for the outcome.
///
/// Safe to race with runs and with itself: one delivery. When the wait runs out the handler goes on, and the answer is
/// 202.
#[utoipa::path(
    post, path = "/v1/events/{id}/process", tag = "events", operation_id = "processEvent",
    params(
        ("id" = String, Path, description = "The event's id."),
        ("wait_ms" = Option<u64>, Query, minimum = 0, maximum = 840_000,
            description = "How long to wait for the outcome; 30000 when it is not given. Not together with the body's."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    request_body(content = Option<WaitBody>),
    responses(
        (status = 200, description = "What became of the event.", body = ProcessedView),
        (status = 202, description = "The wait ran out; the handler goes on.", body = ProcessedView),
        ProcessEventProblems,
    )
)]
pub(super) async fn process(
    Extension(caller): Extension<Caller>,
    PathId(id): PathId,
    Query(wait): Query<Wait>,
    outbox: Outbox,
    OptionalJson(body): OptionalJson<WaitBody>,
) -> Answer<Response> {
    let wait_ms = match (wait.0, body.wait_ms) {
        (Some(_), Some(_)) => return Err(Problem::field("/wait_ms", "is given in the query and in the body")),
        (Some(wait_ms), None) | (None, Some(wait_ms)) => wait_ms,
        (None, None) => DEFAULT_WAIT_MS,
    };
    if wait_ms > MAX_WAIT_MS {
        return Err(Problem::field("/wait_ms", format!("must be a whole number from 0 to {MAX_WAIT_MS}")));
    }
    // Awaited in place: when the caller hangs up this future is dropped, and the processor learns of it by that.
    let processed = outbox.process_event(&id, Duration::from_millis(wait_ms)).await?;
    let event = outbox.store().event(&id, caller.may(Scope::Payload)).await?.ok_or_else(Problem::event_not_found)?;
    let status = if processed.still_running { StatusCode::ACCEPTED } else { StatusCode::OK };
    let view = ProcessedView {
        outcome: processed.outcome.as_str(),
        reason: processed.reason,
        event: EventView::new(event, outbox.outbox(), &caller),
    };
    Ok((status, axum::Json(view)).into_response())
}
