//! What somebody does who is woken at night and has read nothing.

use std::time::Duration;

use serde_json::json;

use super::browser::Browser;
use super::site::Site;
use crate::support::receiver::Reply;

const HALF_AN_HOUR: &str = "1800000000";

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_is_seen_and_its_dead_letter_is_opened_understood_requeued_and_seen_completed() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    site.dead_letter("invoice.created", "invoice/42", r#"{"error":"unknown currency"}"#);
    site.enqueue("order.shipped", "order/7", &json!({"parcels": 2}));
    site.sql(&format!("UPDATE outbox_event SET available_at = available_at - {HALF_AN_HOUR} WHERE status = 'pending'"))
        .await;

    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "Events are due and nothing has ever called").await;
    browser.shows("#verdict-text", "order.shipped").await;
    browser.shows("#lanes", "30 minutes").await;
    browser.click("[data-key=verdict-process]").await;
    browser.shows("#notice", "The run has ended: 1 completed. It stopped: drained. Nothing was left").await;
    browser.shows("#verdict-headline", "1 was given up").await;

    browser.click("[data-key=verdict-dead-letters]").await;
    browser.shows("#dead-list", "HTTP 422").await;
    browser.click("#dead-list button.link").await;
    browser.shows("#event-title", "invoice.created").await;
    browser.shows("#event-body .why", "HTTP 422").await;
    browser.shows("#event-body pre.answer", "unknown currency").await;
    browser.shows("#event-payload", "\"amount\": 4200").await;

    browser.click("[data-key=event-requeue]").await;
    browser.write("#confirm input", "the currency is known now").await;
    browser.click("#confirm-yes").await;
    browser.shows("#event .message", "Requeued").await;
    browser.shows("#event-title", "pending").await;
    browser.click("[data-key=event-process]").await;
    browser.shows("#event .message", "Processed: completed").await;
    browser.shows("#event-title", "completed").await;
    browser.shows("#event-body", "the currency is known now").await;
    browser.click("#event-close").await;
    browser.shows("#verdict-headline", "Events flow").await;
    browser.shows("#dead-list", "No dead letters").await;
    browser.shows("#hour", "2 completed").await;
    browser.shows("#runs", "Nothing was left to claim").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_at_a_time_is_set_going_and_it_says_what_it_did() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    site.call("POST", "/v1/events", &json!({"type": "order.shipped", "payload": 1}));
    site.sql(&format!("UPDATE outbox_event SET available_at = available_at - {HALF_AN_HOUR}")).await;
    site.receiver.then(Reply::status(500).after(Duration::from_secs(3)));
    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "nothing has ever called").await;
    browser.shows("#verdict-text", "spends one of its attempts").await;
    browser.click("[data-key=verdict-process]").await;
    browser.shows("#verdict-headline", "A run is under way").await;
    browser.shows("#verdict-actions", "A run is under way").await;
    for _ in 0..3 {
        browser.click("[data-key=verdict-process]").await;
    }
    browser.shows("#notice", "The run has ended: 1 to be retried").await;
    assert!(!browser.text("#verdict-headline").await.contains("nothing has ever called"));
    let runs = site.call("GET", "/v1/runs", &json!(null));
    assert_eq!(runs["data"].as_array().unwrap().len(), 1, "{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_discarded_after_a_question_and_not_without_one() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    let id = site.dead_letter("invoice.created", "invoice/42", "no");
    browser.open(&site.url()).await;
    browser.click(&format!("[data-key='discard-{id}']")).await;
    browser.shows("#confirm-body", "cannot be taken back").await;
    browser.click("#confirm-no").await;
    assert_eq!(site.call("GET", &format!("/v1/events/{id}"), &json!(null))["status"], "dead_letter");
    browser.click(&format!("[data-key='discard-{id}']")).await;
    browser.click("#confirm-yes").await;
    browser.shows("#notice", "Discarded").await;
    browser.shows("#dead-list", "No dead letters").await;
    assert_eq!(site.call("GET", &format!("/v1/events/{id}"), &json!(null))["status"], "skipped");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_found_by_its_id_and_by_its_subject() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    let id = site.enqueue("invoice.created", "invoice/43 & more", &json!({}));
    site.enqueue("order.shipped", "order/7", &json!({}));
    browser.open(&site.url()).await;
    for text in [id.as_str(), "invoice/43 & more"] {
        browser.rewrite("#search-text", text).await;
        browser.click("#search button").await;
        browser.shows("#search-list", "invoice.created").await;
        assert!(!browser.text("#search-list").await.contains("order.shipped"));
    }
    browser.rewrite("#search-text", "nobody knows").await;
    browser.click("#search button").await;
    browser.shows("#search-list", "No event matches").await;
    browser.shows("#search-list", "As of").await;
    site.enqueue("order.shipped", "nobody knows", &json!({}));
    browser.click("[data-key=search-again]").await;
    browser.shows("#search-list", "order.shipped").await;
    browser.shows("#search-list", "not kept up to date").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_was_passed_on_opens_the_event_and_holds_no_token() {
    let site = Site::start().await;
    let id = site.dead_letter("invoice.created", "invoice/42", "no");
    let site = site.behind_tokens().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    browser.write("#token", "night-watch-token").await;
    browser.click("#token-keep").await;
    browser.click("#token-form button.main").await;
    browser.click(&format!("[data-key='open-{id}']")).await;
    browser.shows("#event-title", "invoice.created").await;
    let address = browser.url().await;
    assert!(address.contains(&id) && !address.contains("token"), "{address}");

    browser.open("about:blank").await;
    browser.open(&address).await;
    browser.shows("#event-title", "invoice.created").await;
}
