//! The engine, tried through the library with real databases and real receivers: what happens to an event, within which
//! budget, whatever handlers, callers, processes and databases do meanwhile. Each test runs on both databases.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use outboxd::budget::Budget;
use outboxd::event::{Event, NewEvent};
use outboxd::handler::webhook::{Webhook, WebhookClient, WebhookSettings};
use outboxd::handler::{Delivery, Handler, Registry, Route};
use outboxd::lease::ClaimedEvent;
use outboxd::outcome::Outcome;
use outboxd::processor::{Processor, ProcessorSettings, RunRequest};
use outboxd::run::{RunReport, RunState, Trigger};
use outboxd::store::Store;
use uuid::Uuid;

use crate::support::database::TestDb;
use crate::support::receiver::Receiver;

/// One test on every database: `engine_test!(its_sentence, |world| { … });`
macro_rules! engine_test {
    ($name:ident, |$world:ident| $body:block) => {
        mod $name {
            use super::*;

            async fn check($world: crate::engine::World) {
                $body
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn on_sqlite() {
                check(crate::engine::World::on(crate::support::database::TestDb::empty_sqlite().await).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn on_postgres() {
                check(crate::engine::World::on(crate::support::database::TestDb::empty_postgres().await).await).await;
            }
        }
    };
}

mod answered;
mod budgets;
mod by_id;
mod fairness;
mod handlers;
mod leases;
mod life;
mod locks;
mod outage;
mod outboxes;
mod overlap;
mod poison;
mod program;
mod retention;
mod service;
mod stopping;
mod tracing;

/// Long enough for any handler here.
const LONG: Duration = Duration::from_secs(20);
/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A database with an outbox in it.
struct World {
    sql: TestDb,
    store: Arc<dyn Store>,
}

impl World {
    async fn on(sql: TestDb) -> Self {
        let store = sql.migrated().await;
        Self { sql, store }
    }

    async fn enqueue(&self, event_type: &str) -> Uuid {
        self.enqueue_as(NewEvent::new(event_type, r#"{"n":1}"#)).await
    }

    async fn enqueue_as(&self, event: NewEvent) -> Uuid {
        self.store.enqueue(&[event]).await.unwrap()[0].event.id.uuid().unwrap()
    }

    async fn enqueue_many(&self, event_type: &str, count: usize) {
        let events = vec![NewEvent::new(event_type, "1"); count];
        for batch in events.chunks(1_000) {
            self.store.enqueue(batch).await.unwrap();
        }
    }

    async fn event(&self, id: Uuid) -> Event {
        self.store.event(&id.into(), false).await.unwrap().unwrap()
    }

    /// The event's status, attempts and claims.
    async fn standing(&self, id: Uuid) -> (&'static str, i32, i64) {
        let event = self.event(id).await;
        (event.status.as_str(), event.attempts, event.claim_no)
    }

    async fn count(&self, status: &str) -> i64 {
        self.sql.count(&format!("SELECT count(*) FROM {{events}} WHERE {{status}} = '{status}'")).await
    }

    /// Events that have failed, been claimed or been touched in any way.
    async fn count_spent(&self) -> i64 {
        self.sql.count("SELECT count(*) FROM {events} WHERE {attempts} > 0").await
    }

    /// Waits until so many events have this status.
    async fn wait_for(&self, status: &str, count: i64) {
        let ends_at = tokio::time::Instant::now() + PATIENCE;
        while self.count(status).await != count {
            assert!(tokio::time::Instant::now() < ends_at, "{} {status}, not {count}", self.count(status).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn processor(&self, routes: Vec<Route>) -> Processor {
        self.processor_with(ProcessorSettings::default(), routes)
    }

    fn processor_with(&self, settings: ProcessorSettings, routes: Vec<Route>) -> Processor {
        Processor::new(Arc::clone(&self.store), Registry::new(routes).unwrap(), settings).unwrap()
    }
}

/// A route of this name and pattern, with a timeout.
fn route(types: &str, timeout: Duration, handler: impl Handler + 'static) -> Route {
    Route { timeout, ..Route::new(types, vec![types.parse().unwrap()], Arc::new(handler)) }
}

/// A route to a receiver.
fn webhook(types: &str, timeout: Duration, receiver: &Receiver) -> Route {
    let settings = WebhookSettings {
        url: receiver.url("/"),
        headers: std::collections::BTreeMap::new(),
        secrets: Vec::new(),
        dead_letter_on: vec![422],
    };
    route(types, timeout, Webhook::new(WebhookClient::new().unwrap(), settings).unwrap())
}

/// A handler made of a closure.
struct Do<F>(F);

#[async_trait]
impl<F> Handler for Do<F>
where
    F: Fn(ClaimedEvent) -> BoxFuture<'static, Outcome> + Send + Sync,
{
    async fn handle(&self, delivery: &Delivery) -> Outcome {
        (self.0)(delivery.event.clone()).await
    }
}

/// A run over everything with this much time and a large batch.
fn within(max_runtime: Duration) -> RunRequest {
    let budget = Budget { batch_size: 10_000, max_runtime, ..Budget::default() };
    RunRequest { budget, ..RunRequest::new(Trigger::Cli) }
}

/// A run that has time enough, and its report, whose sums must be right.
async fn run(processor: &Processor) -> RunReport {
    run_as(processor, within(Duration::from_secs(60))).await
}

async fn run_as(processor: &Processor, request: RunRequest) -> RunReport {
    let report = processor.run(request).await.unwrap();
    assert_sums(&report);
    report
}

fn assert_sums(report: &RunReport) {
    let ends = [
        report.completed,
        report.retried,
        report.deferred,
        report.skipped,
        report.dead_lettered,
        report.accepted,
        report.lease_lost,
        report.released,
    ];
    assert_eq!(report.claimed, ends.iter().sum::<u64>(), "{report:?}");
    assert_eq!(report.state, RunState::Finished);
}

/// Microseconds since the epoch, by this machine's clock, which is the databases' too.
fn now_micros() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}
