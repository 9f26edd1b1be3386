//! Events as the interface shows them.

use std::collections::BTreeMap;

use axum::http::HeaderValue;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::auth::{Caller, Scope};
use super::outbox::Outbox;
use crate::event::{Event, EventId, Status};
use crate::processor::DEFAULT_OUTBOX;
use crate::store::{Action, Attempt};
use crate::timestamp::Timestamp;

/// An event as it is now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    /// Names the event; the receiver sees it on every attempt.
    #[schema(value_type = String)]
    id: EventId,
    /// The outbox it stands in.
    #[schema(example = "default")]
    outbox: String,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(example = "invoice.created")]
    event_type: String,
    /// What the event is about.
    #[schema(example = "invoice/42", required = true)]
    subject: Option<String>,
    /// Where the event stands.
    #[schema(schema_with = status_schema)]
    status: &'static str,
    /// Failed attempts since it was enqueued or last requeued.
    attempts: i32,
    /// Failed attempts after which it becomes a dead letter.
    max_attempts: i32,
    /// How often it was requeued.
    requeues: i32,
    /// When it is, was or becomes due.
    #[schema(value_type = String, format = DateTime)]
    available_at: Timestamp,
    /// When the present claim was made.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    locked_at: Option<Timestamp>,
    /// When the present claim's lease ends.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    lease_until: Option<Timestamp>,
    /// When it was enqueued.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it reached a terminal state.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    processed_at: Option<Timestamp>,
    /// When it became a dead letter, while it is one.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    dead_at: Option<Timestamp>,
    /// Why the latest failure, deferral, skip or discard happened.
    #[schema(required = true)]
    last_error: Option<String>,
    /// The caller's key.
    #[schema(required = true)]
    idempotency_key: Option<String>,
    /// Sent along to the receiver.
    headers: BTreeMap<String, String>,
    /// The JSON that was enqueued, byte for byte; shown only to tokens with the scope `payload`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    payload: Option<Box<RawValue>>,
    /// The attempts so far, in the order of their claims; with `include=attempts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<AttemptView>, required = false)]
    attempts_log: Option<Vec<AttemptView>>,
    /// What operators did to it, in that order; with `include=attempts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<ActionView>, required = false)]
    actions_log: Option<Vec<ActionView>>,
}

impl EventView {
    /// The event as this caller may see it.
    pub(super) fn new(event: Event, outbox: &str, caller: &Caller) -> Self {
        let payload = event.payload.filter(|_| caller.may(Scope::Payload));
        Self::of_outbox(Event { payload, ..event }, outbox)
    }

    /// The event of the default outbox with all that it holds, for somebody who may read the database itself.
    #[must_use]
    pub fn whole(event: Event) -> Self {
        Self::of_outbox(event, DEFAULT_OUTBOX)
    }

    /// The same of any outbox.
    #[must_use]
    pub fn of_outbox(event: Event, outbox: &str) -> Self {
        Self {
            id: event.id,
            outbox: outbox.to_owned(),
            event_type: event.event_type,
            subject: event.subject,
            status: event.status.as_str(),
            attempts: event.attempts,
            max_attempts: event.max_attempts,
            requeues: event.requeues,
            available_at: event.available_at,
            locked_at: event.locked_at,
            lease_until: event.lease_until,
            created_at: event.created_at,
            processed_at: event.processed_at,
            dead_at: event.dead_at,
            last_error: event.last_error,
            idempotency_key: event.idempotency_key,
            headers: event.headers,
            // A plain INSERT into SQLite can hold a text that is no JSON; such a payload cannot be shown.
            payload: event.payload.and_then(|text| RawValue::from_string(text).ok()),
            attempts_log: None,
            actions_log: None,
        }
    }

    /// The same with its logs: of attempts, and of what operators did.
    #[must_use]
    pub fn with_logs(self, attempts: Vec<Attempt>, actions: Vec<Action>) -> Self {
        let attempts_log = Some(attempts.into_iter().map(AttemptView::from).collect());
        let actions_log = Some(actions.into_iter().map(ActionView::from).collect());
        Self { attempts_log, actions_log, ..self }
    }

    /// The value of a `Location` header that leads to the event.
    pub(super) fn location(&self, outbox: &Outbox) -> HeaderValue {
        HeaderValue::from_str(&outbox.location(&self.id)).unwrap_or(HeaderValue::from_static("/v1/events"))
    }
}

/// An event that a change has returned without its payload, shown with it to callers that may see it. The change is done,
/// so that failing to read the payload afterwards only leaves it out.
pub(super) async fn view_changed(outbox: &Outbox, mut event: Event, caller: &Caller) -> EventView {
    if caller.may(Scope::Payload) {
        let read = outbox.store().event(&event.id, true).await;
        event.payload = read.ok().flatten().and_then(|now| now.payload);
    }
    EventView::new(event, outbox.outbox(), caller)
}

fn status_schema() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("Where the event stands."))
        .enum_values(Some(Status::ALL.map(Status::as_str)))
        .build()
}

/// One attempt to deliver an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(super) struct AttemptView {
    /// 1 on the first attempt since the event was enqueued or requeued; repeats after a deferral.
    number: i32,
    /// When the claim was made.
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    /// How long the handler took.
    duration_ms: i64,
    /// What the handler said, or `expired` for a lease that was taken back.
    outcome: String,
    /// The receiver's HTTP status.
    #[schema(required = true)]
    status_code: Option<i32>,
    /// What went wrong.
    #[schema(required = true)]
    error: Option<String>,
    /// The beginning of the receiver's answer.
    #[schema(required = true)]
    response: Option<String>,
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        Self {
            number: attempt.number,
            started_at: attempt.started_at,
            duration_ms: attempt.duration_ms,
            outcome: attempt.outcome,
            status_code: attempt.status_code,
            error: attempt.error,
            response: attempt.response,
        }
    }
}

/// What an operator did to an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Action)]
pub(super) struct ActionView {
    /// `requeue`, `discard` or `cancel`.
    action: &'static str,
    /// The token's name; `cli` and the user's name for a command on the database itself.
    actor: String,
    /// When it was done.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Why.
    #[schema(required = true)]
    note: Option<String>,
}

impl From<Action> for ActionView {
    fn from(action: Action) -> Self {
        Self { action: action.kind.as_str(), actor: action.actor, at: action.at, note: action.note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(payload: &str) -> Event {
        let at = Timestamp::from_micros(1);
        Event {
            id: uuid::Uuid::nil().into(),
            event_type: "a".to_owned(),
            subject: None,
            payload: Some(payload.to_owned()),
            headers: BTreeMap::new(),
            idempotency_key: None,
            status: Status::Pending,
            attempts: 0,
            max_attempts: 10,
            requeues: 0,
            available_at: at,
            locked_at: None,
            lease_until: None,
            claim_no: 0,
            deferred_since: None,
            created_at: at,
            processed_at: None,
            dead_at: None,
            last_error: None,
        }
    }

    #[test]
    fn an_event_is_written_in_the_order_of_the_contract_with_its_payload_as_it_was() {
        let view =
            EventView::new(event(r#"{"n":9007199254740993, "a":1.0,"a":2}"#), "default", &Caller::example(&Scope::ALL));
        assert_eq!(
            serde_json::to_string(&view).unwrap(),
            concat!(
                r#"{"id":"00000000-0000-0000-0000-000000000000","outbox":"default","type":"a","subject":null,"#,
                r#""status":"pending","attempts":0,"max_attempts":10,"requeues":0,"#,
                r#""available_at":"1970-01-01T00:00:00.000001Z","locked_at":null,"lease_until":null,"#,
                r#""created_at":"1970-01-01T00:00:00.000001Z","processed_at":null,"dead_at":null,"last_error":null,"#,
                r#""idempotency_key":null,"headers":{},"payload":{"n":9007199254740993, "a":1.0,"a":2}}"#
            )
        );
    }

    #[test]
    fn without_the_scope_there_is_no_payload() {
        let view = EventView::new(event("{}"), "default", &Caller::example(&[Scope::Read]));
        assert!(!serde_json::to_string(&view).unwrap().contains("payload"));
    }
}
