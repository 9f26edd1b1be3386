//! Several outboxes on one page: one is chosen for the lists, the first line speaks of all.

use std::sync::Arc;

use async_trait::async_trait;
use outboxd::api::{ApiSettings, router, serve};
use outboxd::handler::{Delivery, Handler, Pattern, Registry, Route};
use outboxd::outcome::Outcome;
use outboxd::processor::{OutboxParts, Outboxes, ProcessorSettings};
use outboxd::store::{StoreOptions, connect};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::browser::Browser;
use super::site::Site;
use crate::support::program::http;

/// Gives every event up at once.
struct Undeliverable;

#[async_trait]
impl Handler for Undeliverable {
    async fn handle(&self, _: &Delivery) -> Outcome {
        Outcome::DeadLetter { error: "no such receiver".to_owned() }
    }
}

async fn part(folder: &tempfile::TempDir, name: &str) -> OutboxParts {
    let file = folder.path().join(format!("{name}.db"));
    let store = connect(&StoreOptions::new(format!("sqlite://{}", file.display()))).await.unwrap();
    store.migrate().await.unwrap();
    let registry = Registry::new(vec![Route::new("all", vec![Pattern::All], Arc::new(Undeliverable))]).unwrap();
    OutboxParts { name: name.to_owned(), store, registry, settings: ProcessorSettings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outbox_is_chosen_for_the_lists_and_the_verdict_speaks_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let outboxes = Outboxes::new(vec![part(&folder, "default").await, part(&folder, "orders").await]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, router(ApiSettings::default(), outboxes), CancellationToken::new()));
    let call = |path: &str, body: &Value| {
        let (status, answer) = tokio::task::block_in_place(|| http(address, "POST", path, &body.to_string()));
        assert!((200..300).contains(&status), "{answer}");
        serde_json::from_str::<Value>(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let later = json!({"type": "invoice.created", "payload": 1, "delay_ms": 3_600_000});
    call("/v1/events", &later);
    let event = call("/v1/events?outbox=orders", &json!({"type": "order.shipped", "payload": 1}));
    let id = event["id"].as_str().unwrap();
    assert_eq!(call(&format!("/v1/events/{id}/process?outbox=orders"), &json!({}))["outcome"], "dead_letter");
    call("/v1/process", &json!({}));

    let browser = Browser::start().await;
    browser.open(&format!("http://{address}/")).await;
    browser.shows("#verdict-headline", "1 was given up").await;
    browser.shows("#outbox-label", "orders").await;
    browser.shows("#lanes", "invoice.created").await;
    browser.shows("#dead-list", "No dead letters").await;
    browser.shows("#verdict-text", "in outbox orders").await;
    browser.shows("#verdict-actions", "See the dead letters of orders").await;
    browser.click("[data-key=verdict-dead-letters]").await;
    browser.shows("#dead-list", "no such receiver").await;
    browser.holds("return document.getElementById('outbox').value === 'orders'", Vec::new()).await;
    browser.write("#outbox", "default").await;
    browser.shows("#dead-list", "No dead letters").await;
    browser.shows("#lanes", "invoice.created").await;
    browser.click("[data-key=verdict-dead-letters]").await;
    browser.shows("#lanes", "order.shipped").await;
    browser.shows("#dead-list", "no such receiver").await;
    assert!(!browser.text("#lanes").await.contains("invoice.created"));

    browser.click(&format!("[data-key='open-{id}']")).await;
    browser.shows("#event-title", "order.shipped").await;
    browser.click("[data-key=event-requeue]").await;
    browser.click("#confirm-yes").await;
    browser.shows("#event-title", "pending").await;
    browser.click("#event-close").await;
    browser.shows("#dead-list", "No dead letters").await;
    server.abort();
}

/// An application's own table with two dead letters and one event that waits; it has no word for what was skipped.
const TABLE: &str = r#"
CREATE TABLE "DomainEvent" (
    "id" TEXT PRIMARY KEY, "type" TEXT NOT NULL, "payload" TEXT NOT NULL, "status" TEXT NOT NULL DEFAULT 'PENDING',
    "attempts" INTEGER NOT NULL DEFAULT 0, "availableAt" INTEGER NOT NULL, "claimedAt" INTEGER,
    "createdAt" INTEGER NOT NULL, "processedAt" INTEGER, "lastError" TEXT);
CREATE INDEX "due" ON "DomainEvent" ("status", "availableAt");
INSERT INTO "DomainEvent" ("id", "type", "payload", "status", "attempts", "availableAt", "createdAt", "processedAt", "lastError")
VALUES ('e1', 'order.shipped', '{}', 'FAILED', 3, 1764547200000, 1764547200000, 1764547200000, 'HTTP 500'),
       ('e2', 'order.shipped', '{}', 'FAILED', 3, 1764547200000, 1764547200000, 1764547200000, 'HTTP 500'),
       ('e3', 'order.shipped', '{}', 'PENDING', 0, 4102444800000, 1764547200000, NULL, NULL);
"#;

const ADOPTED: &str = r#"
[[outbox]]
name = "app"
table = "DomainEvent"
max_attempts = 3
lease = "5m"
instants = "milliseconds"
[outbox.columns]
id = "id"
event_type = "type"
payload = "payload"
status = "status"
attempts = "attempts"
available_at = "availableAt"
locked_at = "claimedAt"
created_at = "createdAt"
processed_at = "processedAt"
last_error = "lastError"
[outbox.status]
pending = "PENDING"
processing = "PROCESSING"
completed = "DONE"
dead_letter = "FAILED"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_a_word_for_skipped_says_which_setting_gives_it_and_offers_no_discard_again() {
    let site = Site::beside(TABLE, ADOPTED).await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    browser.click("[data-key=verdict-dead-letters]").await;
    browser.shows("#dead-list", "HTTP 500").await;
    for button in ["discard-e1", "all-discard"] {
        browser.open("about:blank").await;
        browser.open(&site.url()).await;
        browser.click("[data-key=verdict-dead-letters]").await;
        browser.click(&format!("[data-key={button}]")).await;
        if button == "discard-e1" {
            browser.click("#confirm-yes").await;
        }
        browser.shows("#notice", "[outbox.status] skipped").await;
        for gone in ["discard-e1", "discard-e2", "all-discard"] {
            browser.hides(&format!("[data-key={gone}]")).await;
        }
        browser.shows("#dead-list", "Requeue").await;
        browser.click("[data-key=open-e1]").await;
        browser.shows("#event-body", "Requeue").await;
        browser.hides("[data-key=event-discard]").await;
    }
}
