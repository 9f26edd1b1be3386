//! A long transaction elsewhere holds back vacuum, and dead index entries pile up in front of each lane.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outboxd::budget::Budget;
use outboxd::handler::{Discard, Registry, Route};
use outboxd::processor::{Processor, ProcessorSettings, RunRequest};
use outboxd::run::Trigger;
use outboxd::store::{self, StoreOptions};
use sqlx::{Connection, PgConnection};

use super::explain::Session;
use super::table::empty_outbox;
use super::{FRONT_AT, FRONT_ID};
use crate::support::postgres::fresh_database;

/// An instance that knows how far it has come goes on from there; one that does not wades through what is dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_position_passes_dead_entries_by() {
    let url = empty_outbox().await;
    let mut session = Session::open(&url, "force_generic_plan").await;
    // Due in another order than they were written in, as with many writers.
    session
        .run(
            "INSERT INTO outbox.event (event_type, payload, created_at, available_at)
             SELECT 'lane', '{}', now() - interval '1 hour',
                    now() - interval '1 hour' + (n * 7919 % 30000) * interval '10 ms'
             FROM generate_series(1, 30000) AS n",
        )
        .await;
    let mut elsewhere = Session::open(&url, "auto").await;
    elsewhere.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    elsewhere.text("SELECT count(*)::text FROM outbox.event").await;
    let place = "FROM outbox.event ORDER BY available_at, id OFFSET 20000 LIMIT 1";
    let at = session.text(format!("SELECT available_at::text {place}")).await;
    let id = session.text(format!("SELECT id::text {place}")).await;
    let complete = "UPDATE outbox.event SET status = 'completed', processed_at = now()";
    session.run(format!("{complete} WHERE (available_at, id) < ('{at}', '{id}')")).await;
    let claim_from =
        |at: &str, id: &str| format!("claim('{{lane}}', '{{100}}', '{{\"{at}\"}}', '{{{id}}}', '{{60000000}}')");

    let from_front = session.explain(&claim_from(FRONT_AT, FRONT_ID)).await;
    let from_position = session.explain(&claim_from(&at, &id)).await;

    let problems = from_position.problems(1_000);
    assert!(problems.is_empty(), "{}\n{}", problems.join("; "), from_position.outline());
    assert!(from_front.buffers() > 10_000, "no dead entries stood in the way: {}", from_front.outline());
    elsewhere.run("COMMIT").await;
}

const RUNS: i64 = 5;
const EVENTS_A_RUN: u32 = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_delivered_while_an_old_snapshot_keeps_dead_entries() {
    let url = fresh_database().await;
    let store = store::connect(&StoreOptions::new(&url)).await.unwrap();
    store.migrate().await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::query(
        "INSERT INTO outbox.event (event_type, payload)
         SELECT 'one.' || n % 4, '{}' FROM generate_series(1, $1) AS n",
    )
    .bind(RUNS * i64::from(EVENTS_A_RUN))
    .execute(&mut connection)
    .await
    .unwrap();
    let mut elsewhere = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox.event")
        .execute(&mut elsewhere)
        .await
        .unwrap();
    let route = Route::new("discard", vec!["*".parse().unwrap()], Arc::new(Discard));
    let registry = Registry::new(vec![route]).unwrap();
    let processor = Processor::new(store, registry, ProcessorSettings::default()).unwrap();

    let mut rates = Vec::new();
    for _ in 0..RUNS {
        let budget = Budget { batch_size: EVENTS_A_RUN, max_runtime: Duration::from_secs(120), ..Budget::default() };
        let began = Instant::now();
        let report = processor.run(RunRequest { budget, ..RunRequest::new(Trigger::Cli) }).await.unwrap();
        rates.push((f64::from(EVENTS_A_RUN) / began.elapsed().as_secs_f64()).round());
        assert_eq!((report.claimed, report.completed), (EVENTS_A_RUN.into(), EVENTS_A_RUN.into()), "{report:?}");
    }
    println!("events a second, each ten thousand behind the dead entries of those before: {rates:?}");

    sqlx::raw_sql("COMMIT").execute(&mut elsewhere).await.unwrap();
    let (delivered, claims): (i64, i64) =
        sqlx::query_as("SELECT count(*) FILTER (WHERE status = 'completed'), max(claim_no) FROM outbox.event")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!((delivered, claims), (RUNS * i64::from(EVENTS_A_RUN), 1));
}
