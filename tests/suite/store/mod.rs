//! The promises of the trait `Store`, held against every database: one suite, each test on each of them.

#![allow(clippy::disallowed_methods, reason = "each test awaits the tasks that it spawns")]

use std::sync::Arc;
use std::time::Duration;

use outboxd::event::{Event, NewEvent};
use outboxd::lease::{ClaimedEvent, Lease};
use outboxd::outcome::{AttemptLine, Change, Settlement};
use outboxd::store::{Actor, Claim, LaneClaim, Store};
use uuid::Uuid;

/// One test on every database: `store_test!(its_sentence, |store, sql| { … });`
macro_rules! store_test {
    ($name:ident, |$store:ident, $sql:ident| $body:block) => {
        mod $name {
            use super::*;

            #[allow(unused_variables, reason = "not every test goes past the store")]
            async fn check($store: std::sync::Arc<dyn outboxd::store::Store>, $sql: crate::support::database::TestDb) {
                $body
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_sqlite() {
                let sql = crate::support::database::TestDb::empty_sqlite().await;
                check(sql.migrated().await, sql).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_postgres() {
                let sql = crate::support::database::TestDb::empty_postgres().await;
                check(sql.migrated().await, sql).await;
            }
        }
    };
}

mod actions;
mod adopted;
mod bulk;
mod claiming;
mod conformance;
mod counting;
mod dropping;
mod enqueueing;
mod event_list;
mod grouping;
mod listing;
mod migrating;
mod missing_parts;
mod model;
mod reaping;
mod restarting;
mod retention;
mod runs;
mod settling;
mod stats;
mod transitions;

const LEASE: Duration = Duration::from_secs(60);

/// Enqueues one event that is due at once.
async fn enqueue(store: &Arc<dyn Store>, event_type: &str) -> Uuid {
    enqueue_as(store, NewEvent::new(event_type, r#"{"n":1}"#)).await
}

async fn enqueue_as(store: &Arc<dyn Store>, event: NewEvent) -> Uuid {
    store.enqueue(&[event]).await.unwrap()[0].event.id.uuid().unwrap()
}

fn lane(event_type: &str, limit: u32) -> LaneClaim {
    LaneClaim { event_type: event_type.to_owned(), limit, from: None, lease: LEASE }
}

fn one_lane(event_type: &str, limit: u32) -> Claim {
    Claim { lanes: vec![lane(event_type, limit)], subject: None }
}

async fn claim(store: &Arc<dyn Store>, event_type: &str, limit: u32) -> Vec<ClaimedEvent> {
    store.claim(&one_lane(event_type, limit)).await.unwrap()
}

/// Enqueues an event and claims it.
async fn claimed(store: &Arc<dyn Store>, event_type: &str) -> ClaimedEvent {
    let id = enqueue(store, event_type).await;
    store.claim_by_id(&id.into(), LEASE).await.unwrap().unwrap()
}

async fn event(store: &Arc<dyn Store>, id: Uuid) -> Event {
    store.event(&id.into(), false).await.unwrap().unwrap()
}

fn settlement(lease: Lease, change: Change) -> Settlement {
    let attempt = AttemptLine {
        number: 1,
        duration: Duration::from_millis(12),
        outcome: "retry",
        status_code: Some(503),
        error: Some("no".to_owned()),
        response: None,
    };
    Settlement { lease, change, attempt: Some(attempt) }
}

/// Whether the settlement was applied.
async fn settle(store: &Arc<dyn Store>, lease: Lease, change: Change) -> bool {
    let applied = store.settle(&[settlement(lease.clone(), change)]).await.unwrap();
    assert!(applied.is_empty() || applied == [lease]);
    !applied.is_empty()
}

fn retry(seconds: u64) -> Change {
    Change::Retry { delay: Duration::from_secs(seconds), after_lease: false, error: "boom".to_owned() }
}

fn bury() -> Change {
    Change::DeadLetter { spends_attempt: true, error: "boom".to_owned() }
}

/// A dead letter.
async fn dead_letter(store: &Arc<dyn Store>, event_type: &str) -> Uuid {
    let claimed = claimed(store, event_type).await;
    assert!(settle(store, claimed.lease.clone(), bury()).await);
    claimed.lease.event_id.uuid().unwrap()
}

/// Who changes events by hand.
fn somebody() -> Actor {
    Actor::new("somebody")
}

/// Microseconds between two instants.
fn between(earlier: outboxd::timestamp::Timestamp, later: outboxd::timestamp::Timestamp) -> i64 {
    later.as_micros() - earlier.as_micros()
}
