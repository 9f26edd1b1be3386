//! One event: enqueue it, read it.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::ApiState;
use super::auth::{Caller, Scope};
use super::body::Json;
use super::event_view::EventView;
use super::new_event_body::NewEventBody;
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::path::PathId;
use super::problem::{Answer, Problem, enqueue_problem};
use super::query::{FromQuery, NoParameters, Query, QueryReader, refused};
use crate::event::{NewEvent, TraceContext, check_idempotency_key};

problem_set!(EnqueueProblems: WithBody, EventIdConflict, IdempotencyKeyReused);
problem_set!(ReadProblems: Plain, EventNotFound);

/// Enqueue an event.
///
/// A replay (the same `Idempotency-Key`, or the same id, with the same content) writes nothing and answers 200 with the
/// event as it is now.
#[utoipa::path(
    post, path = "/v1/events", tag = "events", operation_id = "enqueueEvent",
    params(
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
        ("idempotency-key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[ -~]+$",
            description = "The caller's key, bare or as a quoted string."),
    ),
    request_body = NewEventBody,
    responses(
        (status = 201, description = "The event was enqueued.", body = EventView,
            headers(("location" = String, description = "The event's path."))),
        (status = 200, description = "A replay: the event as it is now.", body = EventView,
            headers(("idempotency-replayed" = String, description = "`true`"),
                ("location" = String, description = "The event's path."))),
        EnqueueProblems,
    )
)]
pub(super) async fn enqueue(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    headers: HeaderMap,
    Json(body): Json<NewEventBody>,
) -> Answer {
    let key = idempotency_key(&headers)?;
    let event = body.into_new_event(key, state.settings().max_payload_bytes, "")?;
    let event = NewEvent { trace: trace_context(&headers), ..event };
    let payload = caller.may(Scope::Payload).then(|| event.payload.clone());
    let enqueued = outbox.store().enqueue(&[event]).await;
    let enqueued = enqueued.map_err(|error| enqueue_problem(error, |_, field| pointer_of(field)))?;
    let Some(mut enqueued) = enqueued.into_iter().next() else {
        return Err(Problem::internal("the store answered an enqueue without its event"));
    };
    // The same fingerprint is the same payload, also for a replay.
    enqueued.event.payload = payload;
    let view = EventView::new(enqueued.event, outbox.outbox(), &caller);
    let location = [(header::LOCATION, view.location(&outbox))];
    if enqueued.created {
        return Ok((StatusCode::CREATED, location, axum::Json(view)).into_response());
    }
    let replayed = [(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"))];
    Ok((StatusCode::OK, location, replayed, axum::Json(view)).into_response())
}

/// Where a refused field of a single event stands: its key is a header.
fn pointer_of(field: &str) -> String {
    match field {
        "idempotency_key" => "/idempotency-key".to_owned(),
        other => format!("/{other}"),
    }
}

/// The trace in which a request is made, if it says so in one readable `traceparent`. A broken one is no error: it would
/// punish the application for its telemetry.
pub(super) fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let parent = parents.next()?.to_str().ok()?;
    if parents.next().is_some() {
        return None;
    }
    // Several headers are one list.
    let states: Vec<&str> = headers.get_all("tracestate").iter().filter_map(|value| value.to_str().ok()).collect();
    TraceContext::read(parent, (!states.is_empty()).then(|| states.join(",")).as_deref())
}

/// Reads the header `Idempotency-Key`: bare, or a quoted string as RFC 8941 writes it.
fn idempotency_key(headers: &HeaderMap) -> Answer<Option<String>> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refused("idempotency-key", "is given more than once"));
    }
    let text = value.to_str().map_err(|_| refused("idempotency-key", "must be visible ASCII"))?;
    let key = match text.strip_prefix('"') {
        None => Some(text.to_owned()),
        Some(quoted) => unquoted(quoted),
    };
    let key = key.ok_or_else(|| refused("idempotency-key", "begins with a quote but is no quoted string"))?;
    check_idempotency_key(&key).map_err(|detail| refused("idempotency-key", detail))?;
    Ok(Some(key))
}

/// The text of a quoted string whose opening quote has been taken off.
fn unquoted(quoted: &str) -> Option<String> {
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted.chars();
    loop {
        match rest.next()? {
            '"' => return rest.as_str().is_empty().then_some(text),
            '\\' => match rest.next()? {
                escaped @ ('"' | '\\') => text.push(escaped),
                _ => return None,
            },
            other => text.push(other),
        }
    }
}

/// What to show beside the event.
pub(super) struct Include {
    attempts: bool,
}

impl FromQuery for Include {
    fn from_query(query: &mut QueryReader) -> Answer<Self> {
        match query.one("include")?.as_deref() {
            None => Ok(Self { attempts: false }),
            Some("attempts") => Ok(Self { attempts: true }),
            Some(_) => Err(refused("include", "must be `attempts`")),
        }
    }
}

/// Read an event.
#[utoipa::path(
    get, path = "/v1/events/{id}", tag = "events", operation_id = "readEvent",
    params(
        ("id" = String, Path, description = "The event's id."),
        ("include" = Option<String>, Query, pattern = "^attempts$", description = "`attempts` adds `attempts_log` and `actions_log`."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    responses((status = 200, description = "The event as it is now.", body = EventView), ReadProblems)
)]
pub(super) async fn read(
    Extension(caller): Extension<Caller>,
    PathId(id): PathId,
    Query(include): Query<Include>,
    outbox: Outbox,
) -> Answer<Response> {
    let event = outbox.store().event(&id, caller.may(Scope::Payload)).await?.ok_or_else(Problem::event_not_found)?;
    let mut view = EventView::new(event, outbox.outbox(), &caller);
    if include.attempts {
        view = view.with_logs(outbox.store().attempts(&id).await?, outbox.store().actions(&id).await?);
    }
    Ok(axum::Json(view).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Answer<Option<String>> {
        idempotency_key(&HeaderMap::from_iter([(HeaderName::from_static("idempotency-key"), text.parse().unwrap())]))
    }

    #[test]
    fn a_key_means_the_same_bare_and_quoted() {
        for (text, expected) in [("a-1", "a-1"), (r#""a-1""#, "a-1"), (r#""a\"\\b""#, r#"a"\b"#), ("a b", "a b")] {
            assert_eq!(key(text).unwrap().as_deref(), Some(expected), "{text}");
        }
        assert_eq!(idempotency_key(&HeaderMap::new()).unwrap(), None);
    }

    #[test]
    fn a_key_that_is_empty_too_long_or_badly_quoted_is_refused() {
        for text in ["", r#""""#, r#"""#, r#""a"b"#, r#""a\b""#, &"x".repeat(256)] {
            assert!(key(text).is_err(), "{text}");
        }
    }
}
