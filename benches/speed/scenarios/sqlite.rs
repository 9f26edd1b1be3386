//! No-op events in a SQLite file: the engine beside a loop of the store's own statements.

use std::str::FromStr;
use std::time::{Duration, Instant};

use outboxd::store::sqlite::SqliteStore;
use outboxd::store::{Store, StoreOptions};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqlSafeStr, SqlStr, SqliteConnection};

use crate::bench::{Bench, rate};
use crate::database::{EVENT_TYPE, fill_sqlite};
use crate::engine::{Engine, Setup};
use crate::report::{Goal, RATE};

pub const ABOUT: &str = "no-op events in a SQLite file: the engine over HTTP beside a raw loop of its statements";

const BATCHES: [u32; 2] = [100, 500];
const CONCURRENCIES: [usize; 2] = [64, 500];
const LEASE_MICROS: i64 = 60_000_000;
const MAX_PAYLOAD_BYTES: i64 = 262_144;

pub async fn run(bench: &mut Bench) {
    let events = bench.size(60_000, 1_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for round in 0..bench.rounds() {
        bench.say_round(round);
        for batch in BATCHES {
            let url = format!("sqlite://{}/raw-{round}-{batch}.db", folder.path().display());
            let took = raw_drain(&url, batch, events).await;
            bench.report.add(&raw_loop(batch), RATE, rate(events, took));
        }
        for concurrency in CONCURRENCIES {
            let url = format!("sqlite://{}/engine-{round}-{concurrency}.db", folder.path().display());
            open(&url, events).await.close().await;
            let engine = Engine::start(Setup::discarding(&url, concurrency)).await;
            let took = engine.drain(events).await;
            bench.report.add(&of_engine(concurrency), RATE, rate(events, took));
        }
    }
    bench.report.ratio("engine 64 of raw loop 100", &of_engine(64), &raw_loop(100), Some(Goal::AtLeast(0.60)));
    bench.report.ratio("engine 500 of raw loop 500", &of_engine(500), &raw_loop(500), Some(Goal::AtLeast(0.60)));
}

fn raw_loop(batch: u32) -> String {
    format!("raw loop, batches of {batch}")
}

fn of_engine(concurrency: usize) -> String {
    format!("engine, concurrency {concurrency}")
}

/// A new file with so many events that are due.
async fn open(url: &str, events: u64) -> SqliteStore {
    let store = SqliteStore::open(&StoreOptions::new(url)).await.expect("the file opens");
    store.migrate().await.expect("the schema is made");
    fill_sqlite(url, events).await;
    store
}

/// One connection, as SQLite has one writer: two transactions a batch, as durable as the store's own.
async fn raw_drain(url: &str, batch: u32, events: u64) -> Duration {
    let store = open(url, events).await;
    let statements = store.statements();
    let named = |name: &str| -> SqlStr {
        let found = statements.iter().find(|(known, _)| *known == name);
        AssertSqlSafe(found.expect("the store has this statement").1.clone()).into_sql_str()
    };
    let (claim, lost, complete) = (named("claim_lane"), named("lost"), named("complete"));
    store.close().await;
    let options = SqliteConnectOptions::from_str(url).expect("a URL").disable_statement_logging();
    let settings = SqliteStore::session_settings().into_iter();
    let options = settings.fold(options, |options, (name, value)| options.pragma(name, value));
    let mut connection = options.connect().await.expect("the file opens");
    let mut position = (i64::MIN, String::new());
    let mut done = 0;
    let began = Instant::now();
    loop {
        let leases = claim_some(&mut connection, claim.clone(), batch, &mut position).await;
        if leases.is_empty() {
            break;
        }
        let ids: Vec<&String> = leases.iter().map(|(id, _)| id).collect();
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
        let query = sqlx::query(lost.clone()).bind(json!(leases).to_string());
        assert!(query.fetch_all(&mut *transaction).await.expect("an answer").is_empty(), "nobody else is here");
        let query = sqlx::query(complete.clone()).bind(json!(ids).to_string());
        done += query.execute(&mut *transaction).await.expect("a settlement").rows_affected();
        transaction.commit().await.expect("a commit");
    }
    let took = began.elapsed();
    assert_eq!(done, events, "the raw loop drains everything");
    took
}

async fn claim_some(
    connection: &mut SqliteConnection,
    claim: SqlStr,
    batch: u32,
    position: &mut (i64, String),
) -> Vec<(String, i64)> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
    let query = sqlx::query(claim).bind(EVENT_TYPE).bind(position.0).bind(position.1.clone());
    let query = query.bind(batch).bind(LEASE_MICROS).bind(MAX_PAYLOAD_BYTES);
    let rows = query.fetch_all(&mut *transaction).await.expect("a claim");
    transaction.commit().await.expect("a commit");
    let last = rows.iter().map(|row| (row.get("available_at"), row.get("id"))).max();
    *position = last.unwrap_or_else(|| position.clone());
    rows.iter().map(|row| (row.get("id"), row.get("claim_no"))).collect()
}
