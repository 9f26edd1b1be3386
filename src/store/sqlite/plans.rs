//! The hot statements stand on their indexes, whatever the statistics say.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row as _};

use super::SqliteStore;
use crate::store::{Store as _, StoreOptions};

/// Statements that run all the time or may meet a large table.
const HOT: [&str; 32] = [
    "survey",
    "peek",
    "peek_subject",
    "claim_lane",
    "claim_subject",
    "claim_by_id",
    "settle_attempts",
    "lost",
    "complete",
    "settle",
    "extend",
    "reap_page",
    "reap_attempts",
    "reap",
    "reap_find",
    "enqueue_by_key",
    "enqueue_by_id",
    "dead_letters",
    "dead_letters_of_type",
    "dead_letters_among",
    "requeue_many",
    "discard_many",
    "events_falling",
    "events_rising",
    "events_live_of_types",
    "events_dead_of_types",
    "events_of_subject",
    "events_read",
    "actions",
    "purge_find",
    "stats_lanes",
    "stats_count",
];

async fn store(directory: &tempfile::TempDir) -> SqliteStore {
    let url = format!("sqlite://{}", directory.path().join("outbox.db").display());
    let options = StoreOptions { call_deadline: Duration::from_secs(60), ..StoreOptions::new(url) };
    let store = SqliteStore::open(&options).await.unwrap();
    store.migrate().await.unwrap();
    store
}

/// The steps that read the event table without searching it.
async fn scans(store: &SqliteStore) -> Vec<String> {
    let mut found = Vec::new();
    for (name, sql) in store.statements() {
        if !HOT.contains(&name) {
            continue;
        }
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        for step in sqlx::query(AssertSqlSafe(explain)).fetch_all(&store.reader).await.unwrap() {
            let detail: String = step.get("detail");
            let of_events = detail.starts_with("SCAN e") || detail.starts_with("SCAN outbox_event");
            if (of_events && !detail.starts_with("SCAN expired")) || detail.contains("SCAN claimable") {
                found.push(format!("{name}: {detail}"));
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hot_statement_scans_the_event_table() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory).await;
    assert_eq!(scans(&store).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_of_an_almost_empty_table_change_no_plan() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory).await;
    sqlx::raw_sql("INSERT INTO outbox_event (event_type, payload) VALUES ('a', '1'), ('b', '2'); ANALYZE;")
        .execute(&store.reader)
        .await
        .unwrap();
    store.close().await;
    let store = self::store(&directory).await;
    assert_eq!(scans(&store).await, Vec::<String>::new());
}
