//! Many events at once: all are enqueued, or none.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ApiState;
use super::body::Json;
use super::events::trace_context;
use super::new_event_body::NewBatchEventBody;
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::problem::{Answer, Problem, enqueue_problem};
use super::query::{NoParameters, Query};
use crate::event::{EventId, NewEvent};

problem_set!(BatchProblems: WithBody, EventIdConflict, IdempotencyKeyReused);

/// Events that one batch may hold.
const MAX_EVENTS: usize = 1000;

/// Events to enqueue together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = NewBatch)]
pub(super) struct BatchBody {
    /// 1 to 1000 events.
    #[schema(min_items = 1, max_items = 1000)]
    events: Vec<NewBatchEventBody>,
}

/// What became of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Batch)]
pub(super) struct BatchView {
    /// The events' ids in the order of the request.
    #[schema(value_type = Vec<String>)]
    ids: Vec<EventId>,
    /// Events that were written.
    created: usize,
    /// Events that were already there.
    replayed: usize,
}

/// Enqueue up to 1000 events, all or nothing.
#[utoipa::path(
    post, path = "/v1/events/batch", tag = "events", operation_id = "enqueueBatch",
    params(("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default")),
    request_body = BatchBody,
    responses((status = 201, description = "Every event is there.", body = BatchView), BatchProblems)
)]
pub(super) async fn enqueue(
    State(state): State<ApiState>,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    headers: HeaderMap,
    Json(body): Json<BatchBody>,
) -> Answer<Response> {
    if !(1..=MAX_EVENTS).contains(&body.events.len()) {
        return Err(Problem::field("/events", "must hold 1 to 1000 events"));
    }
    let trace = trace_context(&headers);
    let max_payload_bytes = state.settings().max_payload_bytes;
    let events = body.events.into_iter().enumerate().map(|(index, event)| {
        let (event, key) = event.split();
        let event = event.into_new_event(key, max_payload_bytes, &format!("/events/{index}"))?;
        Ok(NewEvent { trace: trace.clone(), ..event })
    });
    let events = events.collect::<Answer<Vec<_>>>()?;
    let enqueued = outbox.store().enqueue(&events).await;
    let enqueued = enqueued.map_err(|error| enqueue_problem(error, |at, field| format!("/events/{at}/{field}")))?;
    let created = enqueued.iter().filter(|event| event.created).count();
    let view = BatchView {
        created,
        replayed: enqueued.len() - created,
        ids: enqueued.into_iter().map(|enqueued| enqueued.event.id).collect(),
    };
    Ok((StatusCode::CREATED, axum::Json(view)).into_response())
}
