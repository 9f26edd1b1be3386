//! Cancel an event that has not been claimed yet.

use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::ToSchema;

use super::auth::Caller;
use super::body::OptionalJson;
use super::event_view::{EventView, view_changed};
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::path::PathId;
use super::problem::{Answer, Code, Problem};
use super::query::{NoParameters, Query, check_text};
use crate::event::Status;
use crate::outcome::MAX_REASON_CHARS;
use crate::store::Transition;

problem_set!(CancelProblems: WithBody, EventNotFound, NotCancellable);

/// Why an event is cancelled.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Cancel)]
pub(super) struct CancelBody {
    /// Becomes the event's `last_error`; `cancelled` when it is not given.
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    reason: Option<String>,
}

/// Cancel a pending event. Doing so again changes nothing and answers 200.
#[utoipa::path(
    post, path = "/v1/events/{id}/cancel", tag = "events", operation_id = "cancelEvent",
    params(
        ("id" = String, Path, description = "The event's id."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    request_body(content = Option<CancelBody>),
    responses((status = 200, description = "The event, skipped.", body = EventView), CancelProblems)
)]
pub(super) async fn cancel(
    Extension(caller): Extension<Caller>,
    PathId(id): PathId,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    OptionalJson(body): OptionalJson<CancelBody>,
) -> Answer<Json<EventView>> {
    check_text(body.reason.as_deref(), "/reason", MAX_REASON_CHARS)?;
    let reason = body.reason.as_deref();
    let event = match outbox.store().cancel(&id, reason.unwrap_or("cancelled"), &caller.actor(reason)).await? {
        Transition::Applied(event) => {
            tracing::info!(event_id = %id, token = caller.name(), "event cancelled");
            event
        }
        Transition::Refused(event) if event.status == Status::Skipped => event,
        Transition::Refused(event) => {
            let detail = if event.status == Status::Pending {
                "this outbox's table has no status for an event that was cancelled"
            } else {
                "only a pending event can be cancelled"
            };
            return Err(Problem::wrong_state(Code::NotCancellable, event.status, detail));
        }
        Transition::Absent => return Err(Problem::event_not_found()),
    };
    Ok(Json(view_changed(&outbox, *event, &caller).await))
}
