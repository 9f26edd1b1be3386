//! What the router says before any database is asked: tokens, methods, media types, limits, ids.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;
use uuid::Uuid;

use super::{ApiSettings, Scope, Token, router};
use crate::event::{Event, EventId, NewEvent};
use crate::handler::Registry;
use crate::lease::{ClaimKey, ClaimedEvent, Lease};
use crate::outcome::Settlement;
use crate::processor::{OutboxParts, Outboxes, ProcessorSettings};
use crate::run::{RunRecord, RunReport, Trigger};
use crate::store::{
    Action, Actor, Attempt, BulkChange, Claim, DeadLetterFilter, DeadLetterIds, DeadLetterPage, DeadLetterPosition,
    DeadLetterQuery, EnqueueError, Enqueued, EventPage, EventQuery, InFlightKey, LaneFront, Minute, MinuteCounts, Peek,
    ReapLane, ReapPage, Reaped, RequeueChange, RunPage, Stats, Store, StoreError, Transition,
};

/// A store that nobody may reach: each call panics, which the router answers with 500.
struct Untouched {
    ids_are_uuids: bool,
}

#[async_trait]
#[rustfmt::skip]
impl Store for Untouched {
    async fn migrate(&self) -> Result<(), StoreError> { panic!("touched") }
    async fn ready(&self) -> Result<(), StoreError> { panic!("touched") }
    async fn enqueue(&self, _: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> { panic!("touched") }
    async fn survey(&self, _: Option<&str>, _: u32) -> Result<Vec<LaneFront>, StoreError> { panic!("touched") }
    async fn claim(&self, _: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> { panic!("touched") }
    async fn claim_by_id(&self, _: &EventId, _: Duration) -> Result<Option<ClaimedEvent>, StoreError> { panic!("touched") }
    async fn is_due(&self, _: &EventId) -> Result<bool, StoreError> { panic!("touched") }
    async fn peek(&self, _: &Claim) -> Result<Peek, StoreError> { panic!("touched") }
    async fn settle(&self, _: &[Settlement]) -> Result<Vec<Lease>, StoreError> { panic!("touched") }
    fn parse_id(&self, text: &str) -> Option<EventId> {
        let id = EventId::from_text(text);
        if self.ids_are_uuids { id.uuid().map(EventId::Uuid) } else { Some(id) }
    }
    async fn extend(&self, _: &Lease, _: Duration) -> Result<Option<Lease>, StoreError> { panic!("touched") }
    async fn reap(&self, _: &[ReapLane], _: u32) -> Result<ReapPage, StoreError> { panic!("touched") }
    async fn reap_by_id(&self, _: &EventId) -> Result<Option<Reaped>, StoreError> { panic!("touched") }
    async fn claim_key(&self) -> Result<ClaimKey, StoreError> { panic!("touched") }
    async fn event(&self, _: &EventId, _: bool) -> Result<Option<Event>, StoreError> { panic!("touched") }
    async fn attempts(&self, _: &EventId) -> Result<Vec<Attempt>, StoreError> { panic!("touched") }
    async fn in_flight(&self, _: &[String], _: &InFlightKey) -> Result<Vec<EventId>, StoreError> { panic!("touched") }
    async fn actions(&self, _: &EventId) -> Result<Vec<Action>, StoreError> { panic!("touched") }
    async fn events(&self, _: &EventQuery) -> Result<EventPage, StoreError> { panic!("touched") }
    async fn find_dead_letters(
        &self, _: &DeadLetterFilter, _: Option<&DeadLetterPosition>, _: u32,
    ) -> Result<DeadLetterIds, StoreError> { panic!("touched") }
    async fn dead_letters_among(&self, _: &[EventId]) -> Result<Vec<EventId>, StoreError> { panic!("touched") }
    async fn change_dead_letters(
        &self, _: &[EventId], _: &BulkChange, _: &Actor,
    ) -> Result<Vec<EventId>, StoreError> { panic!("touched") }
    async fn cancel(&self, _: &EventId, _: &str, _: &Actor) -> Result<Transition, StoreError> { panic!("touched") }
    async fn dead_letters(&self, _: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> { panic!("touched") }
    async fn requeue(&self, _: &EventId, _: &RequeueChange, _: &Actor) -> Result<Transition, StoreError> { panic!("touched") }
    async fn discard(&self, _: &EventId, _: &str, _: &Actor) -> Result<Transition, StoreError> { panic!("touched") }
    async fn purge(&self, _: Duration, _: Duration, _: u32) -> Result<u64, StoreError> { panic!("touched") }
    async fn save_run(&self, _: &RunReport, _: Trigger, _: Duration) -> Result<(), StoreError> { panic!("touched") }
    async fn run(&self, _: Uuid) -> Result<Option<RunRecord>, StoreError> { panic!("touched") }
    async fn runs(&self, _: &RunPage) -> Result<Vec<RunRecord>, StoreError> { panic!("touched") }
    async fn stats(&self) -> Result<Stats, StoreError> { panic!("touched") }
    async fn add_minute(&self, _: &str, _: MinuteCounts) -> Result<(), StoreError> { panic!("touched") }
    async fn minutes(&self, _: &str, _: u16) -> Result<Vec<Minute>, StoreError> { panic!("touched") }
    fn max_payload_bytes(&self) -> usize { panic!("touched") }
    async fn close(&self) { panic!("touched") }
}

fn app(tokens: Vec<Token>) -> Router {
    let part = |name: &str, ids_are_uuids| OutboxParts {
        name: name.to_owned(),
        store: Arc::new(Untouched { ids_are_uuids }),
        registry: Registry::default(),
        settings: ProcessorSettings::default(),
    };
    let outboxes = Outboxes::new(vec![part("default", true), part("adopted", false)]).unwrap();
    router(ApiSettings { tokens, max_body_bytes: 1000, max_payload_bytes: 100, ..ApiSettings::default() }, outboxes)
}

async fn ask(tokens: Vec<Token>, request: Request<Body>) -> (Response<()>, Value) {
    let (parts, body) = app(tokens).oneshot(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (Response::from_parts(parts, ()), serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn send(method: Method, path: &str, content_type: Option<&str>, body: &str) -> (Response<()>, Value) {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    ask(Vec::new(), request.body(Body::from(body.to_owned())).unwrap()).await
}

fn code(body: &Value) -> &str {
    body["code"].as_str().unwrap_or_default()
}

const JSON: Option<&str> = Some("application/json");
const ID: &str = "0197a000-0000-7000-8000-000000000001";
const SETTLE: &str = "/v1/events/0197a000-0000-7000-8000-000000000001/settle";

#[tokio::test]
async fn an_unknown_path_is_a_problem_with_the_callers_request_id() {
    let request = Request::get("/v1/nothing").header("x-request-id", "abc").body(Body::empty()).unwrap();
    let (response, body) = ask(Vec::new(), request).await;
    assert_eq!((response.status(), code(&body)), (StatusCode::NOT_FOUND, "not-found"));
    assert_eq!(
        (body["request_id"].as_str(), response.headers()["x-request-id"].to_str().unwrap()),
        (Some("abc"), "abc")
    );
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.headers()["cache-control"], "no-store");
}

#[tokio::test]
async fn a_trailing_slash_is_the_same_resource() {
    for path in ["/livez", "/livez/", "/openapi.yaml/"] {
        assert_eq!(send(Method::GET, path, None, "").await.0.status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_wrong_method_is_405_with_those_that_are_right() {
    for (method, path, allow) in [
        (Method::PUT, "/v1/events", "POST,GET,HEAD"),
        (Method::GET, "/v1/dead-letters/requeue", "POST"),
        (Method::HEAD, "/v1/process", "GET, POST"),
        (Method::DELETE, "/v1/process", "GET, POST"),
        (Method::PUT, "/v1/process/", "GET, POST"),
        (Method::HEAD, "/v1/events/batch", "POST"),
        (Method::POST, "/v1/runs", "GET,HEAD"),
    ] {
        let (response, body) = send(method.clone(), path, None, "").await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert_eq!(response.headers()["allow"], allow, "{method} {path}");
        assert!(method == Method::HEAD || code(&body) == "method-not-allowed", "{method} {path}");
    }
}

#[tokio::test]
async fn a_token_is_judged_before_the_body_and_before_anything_else_of_the_request() {
    let tokens = || vec![Token::new("reader", [Scope::Read].into(), "right").unwrap()];
    let ask_with = async |authorization: Option<&str>| {
        let mut request = Request::post("/v1/events?nonsense=1").header("content-length", "999999999");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        ask(tokens(), request.body(Body::from("{")).unwrap()).await
    };
    let (response, body) = ask_with(None).await;
    assert_eq!((response.status(), code(&body)), (StatusCode::UNAUTHORIZED, "unauthorized"));
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    assert_eq!(ask_with(Some("Bearer wrong")).await.0.status(), StatusCode::UNAUTHORIZED);
    let (response, body) = ask_with(Some("Bearer right")).await;
    assert_eq!((response.status(), code(&body)), (StatusCode::FORBIDDEN, "forbidden"));
    assert!(body["detail"].as_str().unwrap().contains("enqueue"));
}

#[tokio::test]
async fn a_body_must_be_json_of_a_bearable_size() {
    let event = r#"{"type":"a","payload":1,"x":1}"#;
    for (content_type, body, status) in [
        (Some("text/plain"), event, StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (Some("application/json; charset=utf-8"), event, StatusCode::BAD_REQUEST),
        (None, event, StatusCode::BAD_REQUEST),
        (Some("text/plain"), "", StatusCode::BAD_REQUEST),
        (JSON, &"x".repeat(1001), StatusCode::PAYLOAD_TOO_LARGE),
        (JSON, &format!(r#"{{"type":"a","payload":"{}"}}"#, "x".repeat(99)), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(send(Method::POST, "/v1/events", content_type, body).await.0.status(), status, "{body}");
    }
}

#[tokio::test]
async fn a_refused_field_is_named() {
    for (path, body, pointer) in [
        ("/v1/events", r#"{"type":"a","payload":1,"foo":1}"#, "/foo"),
        ("/v1/events", r#"{"type":"a","payload":1,"delay_ms":1,"available_at":"2026-01-01T00:00:00Z"}"#, "/delay_ms"),
        ("/v1/events", r#"{"type":"a","payload":"\ud800"}"#, "/payload"),
        ("/v1/events", r#"{"type":"a","payload":{"a":"\u0000"}}"#, "/payload"),
        ("/v1/events", r#"{"type":"a","payload":1,"id":"0197a000000070008000000000000001"}"#, "/id"),
        ("/v1/events", r#"{"type":"a","payload":1,"id":"00000000-0000-0000-0000-000000000000"}"#, "/id"),
        ("/v1/events/batch", r#"{"events":[]}"#, "/events"),
        ("/v1/events/batch", r#"{"events":[{"type":"a","payload":1},{"type":"","payload":1}]}"#, "/events/1/type"),
        ("/v1/process", r#"{"batch_size":0}"#, "/batch_size"),
        ("/v1/process", r#"{"types":["a","b c"]}"#, "/types/1"),
        ("/v1/process?batch_size=1", r#"{"batch_size":1}"#, "/batch_size"),
        ("/v1/process?max_runtime_ms=840001", "", "/max_runtime_ms"),
        ("/v1/process?mode=later", "", "/mode"),
        ("/v1/process", r#"{"mode":{"sync":null}}"#, "/mode"),
        (SETTLE, r#"{"token":"t","outcome":{"complete":null}}"#, "/outcome"),
        (SETTLE, r#"{"token":"t","outcome":"accepted"}"#, "/outcome"),
        ("/v1/process", r#"{"batch_size":1.5}"#, "/batch_size"),
        ("/v1/process", "null", ""),
        ("/v1/events", r#"{"type":"a","payload":1,"headers":{"x-a":"1","x-a":"1"}}"#, "/headers"),
    ] {
        let (response, answer) = send(Method::POST, path, JSON, body).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path} {body} {answer}");
        assert_eq!(answer["errors"][0]["pointer"], pointer, "{path} {body}");
    }
}

#[tokio::test]
async fn ids_cursors_and_queries_are_read_strictly() {
    for path in [
        "/v1/events/42".to_owned(),
        "/v1/runs/x".to_owned(),
        "/v1/runs?cursor=x".to_owned(),
        "/v1/dead-letters?limit=0".to_owned(),
        "/v1/dead-letters?nonsense=1".to_owned(),
        "/v1/events/in-flight".to_owned(),
        "/v1/events/in-flight?subject=a&key=b&value=c".to_owned(),
        "/v1/events/in-flight?key=b".to_owned(),
        format!("/v1/events/{ID}?include=everything"),
    ] {
        let (response, body) = send(Method::GET, &path, None, "").await;
        assert_eq!((response.status(), code(&body)), (StatusCode::BAD_REQUEST, "invalid-request"), "{path}");
    }
    let (response, body) = send(Method::GET, &format!("/v1/events/{ID}?outbox=other"), None, "").await;
    assert_eq!((response.status(), code(&body)), (StatusCode::NOT_FOUND, "outbox-not-found"));
}

#[tokio::test]
async fn an_adopted_outbox_has_ids_of_any_text_that_can_be_shown() {
    let longest = "x".repeat(255);
    let status = async |id: &str| {
        let path = format!("/v1/events/{id}?outbox=adopted");
        send(Method::GET, &path, None, "").await.0.status()
    };
    for id in ["42", "clx1", "a%20b%2Fc", "%C3%BC", ".", &longest] {
        // Its store was asked.
        assert_eq!(status(id).await, StatusCode::INTERNAL_SERVER_ERROR, "{id}");
    }
    for id in ["%0A", "%00", "%C2%85", "%FF", &format!("{longest}x")] {
        assert_eq!(status(id).await, StatusCode::BAD_REQUEST, "{id}");
    }
}

#[tokio::test]
async fn a_panic_is_answered_as_an_internal_error() {
    let (response, body) = send(Method::GET, &format!("/v1/events/{ID}"), None, "").await;
    assert_eq!((response.status(), code(&body)), (StatusCode::INTERNAL_SERVER_ERROR, "internal"));
    assert!(!body.to_string().contains("touched"));
}
