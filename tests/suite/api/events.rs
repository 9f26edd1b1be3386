//! Enqueue, read, find, cancel.

use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use outboxd::api::{Scope, Token};
use outboxd::handler::Discard;
use std::sync::Arc;

use super::{Api, json};

const PAYLOAD: &str = r#"{"n":9007199254740993, "a":1.0,"a":2}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_comes_back_byte_for_byte() {
    let api = Api::open().await;
    let created = api.post("/v1/events", &format!(r#"{{"type":"a.b","payload":{PAYLOAD}}}"#)).await;
    assert_eq!(created.status(), 201);
    assert!(created.body().contains(PAYLOAD), "{}", created.body());
    let location = created.headers()["location"].to_str().unwrap();
    let read = api.get(location).await;
    assert!(read.body().contains(PAYLOAD), "{}", read.body());
    assert_eq!(json(&read)["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_200_and_other_content_under_the_same_key_is_422() {
    let api = Api::open().await;
    let send = async |key: &str, payload: &str| {
        let body = format!(r#"{{"type":"a","payload":{payload}}}"#);
        api.send(Request::post("/v1/events").header("idempotency-key", key).body(Body::from(body)).unwrap()).await
    };
    let first = send("k-1", "1").await;
    let again = send("\"k-1\"", "1").await;
    assert_eq!((first.status().as_u16(), again.status().as_u16()), (201, 200));
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(json(&first)["id"], json(&again)["id"]);
    let other = send("k-1", "2").await;
    assert_eq!((other.status().as_u16(), json(&other)["code"].as_str()), (422, Some("idempotency-key-reused")));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_from_fifty_callers_at_once_is_created_once_and_replayed_to_the_others() {
    let api = Api::open().await;
    let request = || {
        let request = Request::post("/v1/events").header("idempotency-key", "k-1");
        request.body(Body::from(r#"{"type":"a","payload":1}"#)).unwrap()
    };
    let answers = join_all((0..50).map(|_| api.send(request()))).await;
    let count = |status| answers.iter().filter(|answer| answer.status() == status).count();
    assert_eq!((count(201), count(200)), (1, 49));
    assert!(answers.iter().all(|answer| json(answer)["id"] == json(&answers[0])["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_taken_by_other_content_is_409() {
    let api = Api::open().await;
    let body =
        |payload: u8| format!(r#"{{"type":"a","payload":{payload},"id":"0197a000-0000-7000-8000-000000000001"}}"#);
    assert_eq!(api.post("/v1/events", &body(1)).await.status(), 201);
    assert_eq!(api.post("/v1/events", &body(1)).await.status(), 200);
    assert_eq!(json(&api.post("/v1/events", &body(2)).await)["code"], "event-id-conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_written_whole_or_not_at_all() {
    let api = Api::open().await;
    let batch = r#"{"events":[{"type":"a","payload":1,"idempotency_key":"x","subject":"s"},{"type":"b","payload":2}]}"#;
    let written = api.post("/v1/events/batch", batch).await;
    assert_eq!(written.status(), 201);
    assert_eq!((json(&written)["created"].as_u64(), json(&written)["ids"].as_array().unwrap().len()), (Some(2), 2));
    let clash = r#"{"events":[{"type":"c","payload":1,"subject":"t"},{"type":"a","payload":9,"idempotency_key":"x"}]}"#;
    let refused = api.post("/v1/events/batch", clash).await;
    assert_eq!(
        (refused.status().as_u16(), json(&refused)["errors"][0]["pointer"].as_str()),
        (422, Some("/events/1/idempotency_key"))
    );
    assert_eq!(json(&api.get("/v1/events/in-flight?subject=t").await)["in_flight"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_flight_is_found_by_subject_and_by_payload() {
    let api = Api::open().await;
    let id = api.enqueue(r#"{"type":"a","subject":"invoice/42","payload":{"invoice":42}}"#).await;
    for (query, found) in [
        ("subject=invoice%2F42", true),
        ("key=invoice&value=42&type=a&type=b", true),
        ("key=invoice&value=42&type=b", false),
        ("subject=invoice%2F43", false),
    ] {
        let answer = json(&api.get(&format!("/v1/events/in-flight?{query}")).await);
        assert_eq!(answer["in_flight"], found, "{query}");
        assert_eq!(answer["event_ids"].as_array().unwrap().iter().any(|found| *found == *id), found, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_twice_is_cancelling_once_and_a_completed_event_cannot_be_cancelled() {
    let api = Api::open().await;
    let id = api.enqueue(r#"{"type":"a","payload":1,"delay_ms":60000}"#).await;
    let path = format!("/v1/events/{id}/cancel");
    for _ in 0..2 {
        let answer = api.post(&path, r#"{"reason":"no longer wanted"}"#).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(
            (json(&answer)["status"].as_str(), json(&answer)["last_error"].as_str()),
            (Some("skipped"), Some("no longer wanted"))
        );
    }
    let id = api.enqueue(r#"{"type":"a","payload":1}"#).await;
    assert_eq!(api.post(&format!("/v1/events/{id}/process"), "").await.status(), 200);
    let refused = api.post(&format!("/v1/events/{id}/cancel"), "").await;
    assert_eq!(refused.status(), 409);
    assert_eq!(
        (json(&refused)["code"].as_str(), json(&refused)["event_status"].as_str()),
        (Some("not-cancellable"), Some("completed"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_payload_scope_sees_no_payload() {
    let token = |name: &str, scopes: &[Scope]| Token::new(name, scopes.iter().copied().collect(), name).unwrap();
    let tokens = vec![token("writer", &[Scope::Enqueue]), token("reader", &[Scope::Read, Scope::Payload])];
    let api = Api::with(tokens, Arc::new(Discard)).await;
    let request = Request::post("/v1/events").header("authorization", "Bearer writer");
    let created = api.send(request.body(Body::from(r#"{"type":"a","payload":1}"#)).unwrap()).await;
    assert_eq!(created.status(), 201);
    assert!(json(&created).get("payload").is_none());
    let request =
        Request::get(created.headers()["location"].to_str().unwrap()).header("authorization", "Bearer reader");
    assert_eq!(json(&api.send(request.body(Body::empty()).unwrap()).await)["payload"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_event_is_404() {
    let api = Api::open().await;
    let id = "0197a000-0000-7000-8000-00000000dead";
    assert_eq!(json(&api.get(&format!("/v1/events/{id}")).await)["code"], "event-not-found");
    for path in ["events/{}/process", "events/{}/cancel", "dead-letters/{}/requeue", "dead-letters/{}/discard"] {
        let answer = api.post(&format!("/v1/{}", path.replace("{}", id)), "").await;
        assert_eq!(
            (answer.status().as_u16(), json(&answer)["code"].as_str()),
            (404, Some("event-not-found")),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_of_a_request_is_kept_with_its_event_and_tells_no_replay_apart() {
    const FIRST: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const SECOND: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let api = Api::open().await;
    let send = async |path: &str, parent: &str, body: &str| {
        let request = Request::post(path).header("traceparent", parent).header("tracestate", "a=1");
        api.send(request.header("tracestate", "b=2").body(Body::from(body.to_owned())).unwrap()).await
    };
    let body = r#"{"type":"a","payload":1,"id":"0197a000-0000-7000-8000-000000000001","headers":{"x-a":"b"}}"#;
    let created = send("/v1/events", FIRST, body).await;
    assert_eq!(created.status(), 201);
    let again = send("/v1/events", SECOND, body).await;
    assert_eq!(again.status(), 200, "{}", again.body());
    let expected = serde_json::json!({"traceparent": FIRST, "tracestate": "a=1,b=2", "x-a": "b"});
    for answer in [created, again, api.get("/v1/events/0197a000-0000-7000-8000-000000000001").await] {
        assert_eq!(json(&answer)["headers"], expected);
    }

    let own = format!(r#"{{"type":"a","payload":1,"headers":{{"traceparent":"{SECOND}"}}}}"#);
    assert_eq!(json(&send("/v1/events", FIRST, &own).await)["headers"], serde_json::json!({"traceparent": SECOND}));
    let broken = send("/v1/events", "nonsense", r#"{"type":"a","payload":1}"#).await;
    assert_eq!((broken.status().as_u16(), &json(&broken)["headers"]), (201, &serde_json::json!({})));
    let batch = send("/v1/events/batch", FIRST, r#"{"events":[{"type":"a","payload":1}]}"#).await;
    let id = json(&batch)["ids"][0].as_str().unwrap().to_owned();
    assert_eq!(json(&api.get(&format!("/v1/events/{id}")).await)["headers"]["traceparent"], FIRST);
}
