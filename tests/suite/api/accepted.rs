//! Events that their receiver has accepted: it settles and extends its claim by the token of the delivery.

use std::sync::Arc;

use outboxd::api::{ApiSettings, router};
use outboxd::handler::webhook::{Webhook, WebhookClient, WebhookSettings};
use serde_json::{Value, json};

use super::{Api, json as body};
use crate::support::receiver::{Receiver, Reply};

/// An interface whose only receiver accepts everything, an event that it has accepted, and the event's token.
async fn accepted() -> (Api, Receiver, String, String) {
    let receiver = Receiver::playing([]).await;
    receiver.set_default(Reply::status(200).header("outbox-outcome", "accepted"));
    let (headers, secrets, dead_letter_on) = Default::default();
    let settings = WebhookSettings { url: receiver.url("/"), headers, secrets, dead_letter_on };
    let webhook = Webhook::new(WebhookClient::new().unwrap(), settings).unwrap();
    let api = Api::with(Vec::new(), Arc::new(webhook)).await;
    let id = api.enqueue(r#"{"type":"a","payload":1}"#).await;
    let report = body(&api.post("/v1/process", "").await);
    assert_eq!(report["accepted"], 1, "{report}");
    let token = receiver.received()[0].header("outbox-claim-token").unwrap().to_owned();
    (api, receiver, id, token)
}

async fn settle(api: &Api, id: &str, token: &str, more: Value) -> (u16, Value) {
    let mut request = json!({ "token": token });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = api.post(&format!("/v1/events/{id}/settle"), &request.to_string()).await;
    (answer.status().as_u16(), body(&answer))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_completes_what_it_has_accepted_once() {
    let (api, _receiver, id, token) = accepted().await;
    let (status, event) = settle(&api, &id, &token, json!({"outcome": "complete"})).await;
    assert_eq!((status, event["status"].as_str()), (200, Some("completed")), "{event}");
    let (status, problem) = settle(&api, &id, &token, json!({"outcome": "complete"})).await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("lease-lost")), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_fails_what_it_has_accepted_by_the_same_rules_as_an_answer() {
    let (api, _receiver, id, token) = accepted().await;
    let (status, event) = settle(&api, &id, &token, json!({"outcome": "retry", "reason": "disk full"})).await;
    assert_eq!((status, event["status"].as_str()), (200, Some("pending")), "{event}");
    assert_eq!((event["attempts"].as_i64(), event["last_error"].as_str()), (Some(1), Some("disk full")));
    let log = body(&api.get(&format!("/v1/events/{id}?include=attempts")).await);
    assert_eq!(log["attempts_log"][0]["outcome"], "retry", "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_event_or_of_nobody_is_refused() {
    let (api, _receiver, id, token) = accepted().await;
    let other = api.enqueue(r#"{"type":"a","payload":2}"#).await;
    for (id, token) in [(other.as_str(), token.as_str()), (id.as_str(), "nonsense"), (id.as_str(), "")] {
        let (status, problem) = settle(&api, id, token, json!({"outcome": "complete"})).await;
        assert_eq!((status, problem["code"].as_str()), (401, Some("unauthorized")), "{problem}");
    }
    assert_eq!(body(&api.get(&format!("/v1/events/{id}")).await)["status"], "processing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_send_much() {
    let (api, _receiver, id, token) = accepted().await;
    let longest = json!({"outcome": "retry", "reason": "🦀".repeat(500)});
    assert_eq!(settle(&api, &id, &token, longest).await.0, 200);
    let (status, problem) = settle(&api, &id, &token, json!({"outcome": "retry", "reason": "x".repeat(20_000)})).await;
    assert_eq!((status, problem["code"].as_str()), (413, Some("payload-too-large")), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_moves_the_end_of_the_lease_and_needs_a_living_claim() {
    let (api, _receiver, id, token) = accepted().await;
    let before = body(&api.get(&format!("/v1/events/{id}")).await)["lease_until"].as_str().unwrap().to_owned();
    let path = format!("/v1/events/{id}/extend");
    let answer = api.post(&path, &json!({"token": token, "lease_ms": 3_600_000}).to_string()).await;
    let until = body(&answer)["lease_until"].as_str().unwrap().to_owned();
    let token = body(&answer)["token"].as_str().unwrap().to_owned();
    assert!(answer.status() == 200 && until > before, "{before} {until}");
    settle(&api, &id, &token, json!({"outcome": "skip", "reason": "not ours"})).await;
    let answer = api.post(&path, &json!({"token": token, "lease_ms": 1_000}).to_string()).await;
    assert_eq!((answer.status().as_u16(), body(&answer)["code"].as_str()), (409, Some("lease-lost")));
}

#[tokio::test(flavor = "multi_thread")]
async fn any_instance_on_the_database_accepts_the_token() {
    let (api, _receiver, id, token) = accepted().await;
    let registry = outboxd::handler::Registry::default();
    let settings = outboxd::processor::ProcessorSettings::default();
    let other = outboxd::processor::Processor::new(Arc::clone(&api.store), registry, settings).unwrap();
    let api = Api { router: router(ApiSettings::default(), other.clone()), processor: other, ..api };
    let (status, event) = settle(&api, &id, &token, json!({"outcome": "dead_letter"})).await;
    assert_eq!((status, event["status"].as_str()), (200, Some("dead_letter")), "{event}");
}
