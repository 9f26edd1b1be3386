//! How fast no-op events drain through the real engine, beside a loop of the same claim and settlement in raw SQL.
//!
//! `cargo bench --bench drain` makes throwaway databases (a Postgres server with fsync on, a SQLite file), fills them,
//! measures and prints one table; `-- --json FILE` writes the figures too, `-- --smoke` only sees that all of it runs.
//! Figures of different runs do not compare: machines differ and are shared. Each ratio is of one run.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark fails by panicking and owns its tasks"
)]
#![allow(clippy::wildcard_imports, reason = "in the module that it shares with the tests")]

mod engine;
mod fill;
#[path = "../../tests/suite/support/postgres.rs"]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
mod postgres;
mod raw;
mod report;

use std::time::Duration;

use report::{Report, Row};

/// How much to do.
#[derive(Clone, Copy)]
struct Plan {
    /// Events of one measurement.
    events: u64,
    small_backlog: u64,
    large_backlog: u64,
    /// Rounds of each measurement, in turn, so that a noisy moment does not meet only one side.
    rounds: usize,
}

const FULL: Plan = Plan { events: 100_000, small_backlog: 10_000, large_backlog: 1_000_000, rounds: 3 };
const SMOKE: Plan = Plan { events: 2_000, small_backlog: 1_000, large_backlog: 5_000, rounds: 1 };

/// What the service uses when its settings do not say.
const DEFAULT_CONCURRENCY: usize = 64;
/// What a service that only does no-ops would be given.
const WIDE_CONCURRENCY: usize = 500;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let plan = if arguments.iter().any(|argument| argument == "--smoke") { SMOKE } else { FULL };
    let json = arguments.iter().position(|argument| argument == "--json").and_then(|at| arguments.get(at + 1));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut report = Report::default();
    runtime.block_on(async {
        on_postgres(&mut report, plan).await;
        on_sqlite(&mut report, plan).await;
    });
    report.print();
    if let Some(path) = json {
        std::fs::write(path, report.json()).expect("the JSON file can be written");
        println!("figures written to {path}");
    }
}

async fn on_postgres(report: &mut Report, plan: Plan) {
    let server = postgres::Server::start().await;
    fill::make_durable(server.url()).await;
    for round in 1..=plan.rounds {
        eprintln!("Postgres, round {round} of {}", plan.rounds);
        let url = fill::fresh(server.url()).await;
        let store = engine::open(&url).await;
        for batch in [100, 64, 500] {
            fill::postgres(&url, plan.events).await;
            let raw = raw::postgres(&url, batch, plan.events).await;
            report.add(Row::rate(
                "Postgres",
                &format!("raw loop, batches of {batch}, 2 connections"),
                plan.events,
                raw,
            ));
        }
        for concurrency in [DEFAULT_CONCURRENCY, WIDE_CONCURRENCY] {
            fill::postgres(&url, plan.events).await;
            let took = engine::drain(&store, concurrency, plan.events).await;
            report.add(Row::rate("Postgres", &format!("engine, concurrency {concurrency}"), plan.events, took));
        }
        report.add(Row::time("Postgres", "idle run", engine::idle(&store, 50).await));
        store.close().await;
    }
    for backlog in [plan.small_backlog, plan.large_backlog] {
        with_backlog(report, plan, server.url(), backlog).await;
    }
}

/// Drains the first events of a backlog, several times so many, and then the rest of it.
async fn with_backlog(report: &mut Report, plan: Plan, admin: &str, backlog: u64) {
    eprintln!("Postgres, backlog {backlog}");
    let url = fill::fresh(admin).await;
    let store = engine::open(&url).await;
    let part = plan.small_backlog;
    let mut left = 0;
    for _ in 0..plan.rounds {
        if left < backlog {
            let missing = if left == 0 { backlog } else { part };
            fill::postgres(&url, missing).await;
            left += missing;
        }
        let took = engine::drain(&store, WIDE_CONCURRENCY, part).await;
        left -= part;
        report.add(Row::rate("Postgres", &format!("engine, {part} of a backlog of {backlog}"), part, took));
    }
    if left > 0 {
        let took = engine::drain(&store, WIDE_CONCURRENCY, left).await;
        report.add(Row::rate("Postgres", &format!("engine, the other {left}"), left, took));
    }
    let name = format!("resident memory after draining {backlog}");
    report.add(Row::memory("Postgres", &name, engine::resident_kib()));
    store.close().await;
}

async fn on_sqlite(report: &mut Report, plan: Plan) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for round in 1..=plan.rounds {
        eprintln!("SQLite, round {round} of {}", plan.rounds);
        let url = format!("sqlite://{}/round{round}.db", folder.path().display());
        let store = engine::open(&url).await;
        fill::sqlite(&url, plan.events).await;
        let raw = raw::sqlite(&url, 100, plan.events).await;
        report.add(Row::rate("SQLite", "raw loop, batches of 100", plan.events, raw));
        for concurrency in [DEFAULT_CONCURRENCY, WIDE_CONCURRENCY] {
            fill::sqlite(&url, plan.events).await;
            let took = engine::drain(&store, concurrency, plan.events).await;
            report.add(Row::rate("SQLite", &format!("engine, concurrency {concurrency}"), plan.events, took));
        }
        let idle: Duration = engine::idle(&store, 50).await;
        report.add(Row::time("SQLite", "idle run", idle));
        store.close().await;
    }
}
