//! Dead letters: pages, requeue, discard.

use std::sync::Arc;

use async_trait::async_trait;
use outboxd::handler::{Delivery, Handler};
use outboxd::outcome::Outcome;

use super::{Api, json};

/// Gives every event up at once.
struct Undeliverable;

#[async_trait]
impl Handler for Undeliverable {
    async fn handle(&self, _: &Delivery) -> Outcome {
        Outcome::DeadLetter { error: "no such receiver".to_owned() }
    }
}

pub async fn with_dead_letters(count: usize) -> Api {
    let api = Api::with(Vec::new(), Arc::new(Undeliverable)).await;
    for number in 0..count {
        api.enqueue(&format!(r#"{{"type":"a.{}","payload":{number}}}"#, number % 2)).await;
    }
    let report = json(&api.get("/v1/process").await);
    assert_eq!(report["dead_lettered"], count, "{report}");
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_every_dead_letter_once_and_end_in_a_null_cursor() {
    let api = with_dead_letters(5).await;
    let mut seen = std::collections::BTreeSet::new();
    let mut path = "/v1/dead-letters?limit=2".to_owned();
    loop {
        let page = json(&api.get(&path).await);
        for event in page["data"].as_array().unwrap() {
            assert!(seen.insert(event["id"].to_string()), "twice: {event}");
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/dead-letters?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_refused_with_other_filters() {
    let api = with_dead_letters(4).await;
    let cursor = json(&api.get("/v1/dead-letters?type=a.0&limit=1").await)["next_cursor"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&format!("/v1/dead-letters?type=a.0&cursor={cursor}")).await.status(), 200);
    assert_eq!(api.get(&format!("/v1/dead-letters?type=a.1&cursor={cursor}")).await.status(), 400);
    assert_eq!(api.get(&format!("/v1/runs?cursor={cursor}")).await.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requeued_event_is_pending_with_no_attempts_spent_and_cannot_be_requeued_again() {
    let api = with_dead_letters(1).await;
    let letter = json(&api.get("/v1/dead-letters?error_contains=receiver").await)["data"][0].clone();
    assert_eq!((letter["attempts"].as_i64(), letter["status"].as_str()), (Some(1), Some("dead_letter")));
    let path = format!("/v1/dead-letters/{}/requeue", letter["id"].as_str().unwrap());
    let event = json(&api.post(&path, r#"{"delay_ms":60000,"max_attempts":3,"note":"fixed"}"#).await);
    assert_eq!(
        (event["status"].as_str(), event["attempts"].as_i64(), event["max_attempts"].as_i64()),
        (Some("pending"), Some(0), Some(3))
    );
    assert_eq!((event["requeues"].as_i64(), event["payload"].as_i64()), (Some(1), Some(0)));
    let again = api.post(&path, "").await;
    assert_eq!((again.status().as_u16(), json(&again)["event_status"].as_str()), (409, Some("pending")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discarded_event_is_skipped_with_the_note_as_its_reason() {
    let api = with_dead_letters(1).await;
    let id = json(&api.get("/v1/dead-letters").await)["data"][0]["id"].as_str().unwrap().to_owned();
    let event = json(&api.post(&format!("/v1/dead-letters/{id}/discard"), r#"{"note":"obsolete"}"#).await);
    assert_eq!((event["status"].as_str(), event["last_error"].as_str()), (Some("skipped"), Some("obsolete")));
    assert_eq!(json(&api.get("/v1/dead-letters").await)["data"].as_array().map(Vec::len), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_attempt_log_is_shown_when_it_is_asked_for() {
    let api = with_dead_letters(1).await;
    let id = json(&api.get("/v1/dead-letters").await)["data"][0]["id"].as_str().unwrap().to_owned();
    assert!(json(&api.get(&format!("/v1/events/{id}")).await).get("attempts_log").is_none());
    let log = json(&api.get(&format!("/v1/events/{id}?include=attempts")).await)["attempts_log"].clone();
    assert_eq!((log[0]["number"].as_i64(), log[0]["outcome"].as_str()), (Some(1), Some("dead_letter")));
}
