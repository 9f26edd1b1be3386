//! An outbox of a million events: a backlog, events of the future, and history.

use outboxd::store::{self, StoreOptions};

use super::explain::Session;
use crate::support::postgres::fresh_database;

/// Lanes with due events.
pub const LANES: [&str; 4] = ["backlog.bulk", "backlog.one", "backlog.two", "backlog.three"];
/// A lane with events of the future and nothing else.
pub const IDLE_LANE: &str = "future";
/// Lanes with live events, all told.
pub const LIVE_LANES: u64 = 5;

/// A migrated database without events whose statistics say so, and will go on saying so.
pub async fn empty_outbox() -> String {
    let url = fresh_database().await;
    let store = store::connect(&StoreOptions::new(&url)).await.unwrap();
    store.migrate().await.unwrap();
    store.close().await;
    let mut session = Session::open(&url, "auto").await;
    session.run("ANALYZE outbox.event").await;
    session.run("ANALYZE outbox.attempt").await;
    session.run("ALTER TABLE outbox.event SET (autovacuum_enabled = false)").await;
    session.run("ALTER TABLE outbox.attempt SET (autovacuum_enabled = false)").await;
    url
}

/// A million events: 400,000 due, 200,000 not yet due, 395,000 completed, 5,000 dead letters.
pub async fn fill(session: &mut Session) {
    let insert = "INSERT INTO outbox.event (event_type, payload, subject, available_at, created_at, status,
                                            processed_at, dead_at)";
    // Oldest first, as they would have been written. One lane's events all have one instant, as after a bulk insert.
    session
        .run(format!(
            "{insert} SELECT 'history', '{{\"n\":1}}', 'thing/' || n, created_at, created_at,
                             CASE WHEN n % 80 = 0 THEN 'dead_letter' ELSE 'completed' END, created_at,
                             CASE WHEN n % 80 = 0 THEN created_at END
             FROM (SELECT n, now() - interval '60 days' + n * interval '1 second' AS created_at
                   FROM generate_series(1, 400000) AS n) AS old"
        ))
        .await;
    session
        .run(format!(
            "{insert} SELECT (ARRAY['backlog.bulk', 'backlog.one', 'backlog.two', 'backlog.three'])[1 + n % 4],
                             '{{\"n\":1}}', 'thing/' || n,
                             now() - interval '2 hours' + CASE WHEN n % 4 = 0 THEN 0 ELSE n END * interval '10 ms',
                             now() - interval '2 hours' + n * interval '10 ms', 'pending', NULL, NULL
             FROM generate_series(1, 400000) AS n"
        ))
        .await;
    session
        .run(format!(
            "{insert} SELECT CASE WHEN n % 2 = 0 THEN 'future' ELSE 'backlog.one' END, '{{\"n\":1}}', 'thing/' || n,
                             now() + interval '1 day' + n * interval '1 second', now(), 'pending', NULL, NULL
             FROM generate_series(1, 200000) AS n"
        ))
        .await;
}
