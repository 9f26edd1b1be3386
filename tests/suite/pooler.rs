//! Behind a real PgBouncer in transaction mode, where two statements of one session may reach two servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use outboxd::budget::Budget;
use outboxd::event::NewEvent;
use outboxd::handler::{Delivery, Handler, Registry, Route};
use outboxd::outcome::Outcome;
use outboxd::processor::{ProcessedOutcome, Processor, ProcessorSettings, RunRequest};
use outboxd::run::Trigger;
use outboxd::store::{self, Store, StoreError, StoreOptions};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::support::pooler::Pooler;
use super::support::postgres::fresh_database;

async fn pooled(url: &str) -> Arc<dyn Store> {
    store::connect(&StoreOptions { pooler: true, ..StoreOptions::new(url) }).await.unwrap()
}

/// Counts the deliveries of each event.
#[derive(Default)]
struct Count(Mutex<HashMap<Uuid, u32>>);

#[async_trait]
impl Handler for Count {
    async fn handle(&self, delivery: &Delivery) -> Outcome {
        *self.0.lock().unwrap().entry(delivery.event.lease.event_id.uuid().unwrap()).or_default() += 1;
        Outcome::Complete
    }
}

fn processor(store: Arc<dyn Store>, count: &Arc<Count>) -> Processor {
    let route = Route::new("count", vec!["*".parse().unwrap()], Arc::clone(count) as Arc<dyn Handler>);
    Processor::new(store, Registry::new(vec![route]).unwrap(), ProcessorSettings::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_eight_runs_deliver_each_event_once() {
    let direct = fresh_database().await;
    let pooler = Pooler::start(&direct);
    let stores = [pooled(pooler.url()).await, pooled(pooler.url()).await];
    let mut migrating = JoinSet::new();
    for store in stores.iter().cycle().take(6) {
        let store = Arc::clone(store);
        migrating.spawn(async move { store.migrate().await });
    }
    migrating.join_all().await.into_iter().collect::<Result<Vec<()>, StoreError>>().unwrap();
    stores[0].ready().await.unwrap();

    let events: Vec<NewEvent> = (0..500).map(|n| NewEvent::new(format!("type.{}", n % 3), "{}")).collect();
    let enqueued = stores[0].enqueue(&events).await.unwrap();
    let count = Arc::new(Count::default());
    let processors = [processor(Arc::clone(&stores[0]), &count), processor(Arc::clone(&stores[1]), &count)];
    let mut running = JoinSet::new();
    for processor in processors.iter().cycle().take(8) {
        let processor = processor.clone();
        let budget = Budget { batch_size: 500, ..Budget::default() };
        let request = RunRequest { budget, ..RunRequest::new(Trigger::Cli) };
        running.spawn(async move { processor.run(request).await });
    }
    let reports = running.join_all().await;

    let completed: u64 = reports.into_iter().map(|report| report.unwrap().completed).sum();
    assert_eq!(completed, 500);
    let counts = count.0.lock().unwrap().clone();
    assert!(enqueued.iter().all(|enqueued| counts.get(&enqueued.event.id.uuid().unwrap()) == Some(&1)), "{counts:?}");
    let mut connection = PgConnection::connect(&direct).await.unwrap();
    let (completed, claims): (i64, i64) =
        sqlx::query_as("SELECT count(*) FILTER (WHERE status = 'completed'), sum(claim_no)::bigint FROM outbox.event")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!((completed, claims), (500, 500));
    let locks: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(locks, 0, "a lock was left behind in the pooler's sessions");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_replays_failures_and_single_events_are_as_without() {
    let direct = fresh_database().await;
    let pooler = Pooler::start(&direct);
    let store = pooled(pooler.url()).await;
    assert!(matches!(store.ready().await, Err(StoreError::SchemaOutdated)));
    store.migrate().await.unwrap();

    let keyed = NewEvent { idempotency_key: Some("once".to_owned()), ..NewEvent::new("type", "{}") };
    let first = store.enqueue(std::slice::from_ref(&keyed)).await.unwrap().remove(0);
    let replay = store.enqueue(std::slice::from_ref(&keyed)).await.unwrap().remove(0);
    assert_eq!((replay.created, replay.event.id), (false, first.event.id.clone()));
    // What the server refuses leaves no transaction open in the pooler's session.
    let refused = NewEvent { max_attempts: 1_000, ..NewEvent::new("type", "{}") };
    for _ in 0..20 {
        store.enqueue(std::slice::from_ref(&refused)).await.unwrap_err();
    }

    let count = Arc::new(Count::default());
    let processor = processor(store, &count);
    let mut racing = JoinSet::new();
    for _ in 0..20 {
        let (processor, id) = (processor.clone(), first.event.id.clone());
        racing.spawn(async move { processor.process_event(&id, Duration::from_secs(20)).await.unwrap() });
    }
    let answers = racing.join_all().await;
    assert!(answers.iter().any(|answer| answer.outcome == ProcessedOutcome::Completed), "{answers:?}");
    assert_eq!(*count.0.lock().unwrap(), HashMap::from([(first.event.id.uuid().unwrap(), 1)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_the_settings_do_not_name_is_found_out() {
    let direct = fresh_database().await;
    let pooler = Pooler::start(&direct);
    let store = store::connect(&StoreOptions::new(pooler.url())).await.unwrap();

    let error = store.ready().await.unwrap_err();

    assert!(error.to_string().contains("set database.pooler to true"), "{error}");
}
