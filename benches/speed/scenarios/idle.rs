//! A run that finds nothing to do, as most of a scheduler's calls are: how many statements and how many pages.

use sqlx::{PgConnection, Row};

use crate::bench::{Bench, count};
use crate::database::{Outbox, State, make_durable, run as execute};
use crate::engine::{Engine, Setup};
use crate::postgres::Server;
use crate::report::Goal;

pub const ABOUT: &str = "a run with nothing due, on an empty table and beside a long history: statements and buffers";

const RUNS: u64 = 20;
const LIVE_TYPES: [u64; 3] = [0, 10, 100];
/// Events that wait for a later time, of each live type.
const FUTURE_OF_EACH: u64 = 10;
const MOST_STATEMENTS: f64 = 3.0;
const MOST_BUFFERS: f64 = 30.0;
const MOST_BUFFERS_A_TYPE: f64 = 8.0;

pub async fn run(bench: &mut Bench) {
    // A server of its own: counting statements costs the others something.
    let mut server = Server::start().await;
    let mut connection = crate::database::open(server.url()).await;
    execute(&mut connection, "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'").await;
    drop(connection);
    make_durable(&mut server).await;
    for completed in [0, bench.size(1_000_000, 10_000)] {
        for live_types in LIVE_TYPES {
            measure(bench, &server, completed, live_types).await;
        }
    }
}

async fn measure(bench: &mut Bench, server: &Server, completed: u64, live_types: u64) {
    let outbox = Outbox::create(server.url()).await;
    if completed > 0 {
        outbox.insert_as(completed, 1, State::Completed).await;
    }
    if live_types > 0 {
        outbox.insert_as(live_types * FUTURE_OF_EACH, live_types, State::Future).await;
    }
    outbox.settle_down().await;
    let mut connection = outbox.open().await;
    execute(&mut connection, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await;
    let engine = Engine::start(Setup::discarding(&outbox.url, 64)).await;
    let mut client = engine.client().await;
    // The first one learns what there is and is saved.
    client.post("/v1/process", b"").await.json();
    execute(&mut connection, "SELECT pg_stat_statements_reset()").await;
    for _ in 0..RUNS {
        let report = client.post("/v1/process", b"").await.json();
        assert_eq!(report["claimed"], 0, "{report}");
    }
    let used = used(&mut connection).await;
    let runs = count(RUNS);
    let statements = used.iter().map(|used| used.calls).sum::<f64>() / runs;
    let buffers = used.iter().map(|used| used.buffers).sum::<f64>() / runs;
    let at = format!("{completed} completed, live types: {live_types}");
    bench.report.judge(&format!("statements a run, {at}"), "statements", statements, Goal::AtMost(MOST_STATEMENTS));
    let most = MOST_BUFFERS + MOST_BUFFERS_A_TYPE * count(live_types);
    bench.report.judge(&format!("buffers a run, {at}"), "buffers", buffers, Goal::AtMost(most));
    let parts =
        used.iter().map(|used| format!("{} {:.1} × {:.1}", used.name, used.calls / runs, used.buffers / used.calls));
    bench.report.note(format!("{at}: {}", parts.collect::<Vec<_>>().join(", ")));
    drop((engine, connection));
    outbox.discard().await;
}

/// What a statement did.
struct Used {
    name: String,
    calls: f64,
    buffers: f64,
}

/// All statements of this database since the reset; the store's own begin with their names.
async fn used(connection: &mut PgConnection) -> Vec<Used> {
    let query = sqlx::query(
        "SELECT coalesce(substring(query FROM '^-- outbox: ([^\n]*)'), left(query, 60)) AS name, calls::float8 AS calls,
                (shared_blks_hit + shared_blks_read)::float8 AS buffers
         FROM pg_stat_statements
         WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND query NOT LIKE '%pg_stat_statements%'
         ORDER BY calls DESC",
    );
    let rows = query.fetch_all(connection).await.expect("statements are counted");
    rows.iter()
        .map(|row| Used { name: row.get("name"), calls: row.get("calls"), buffers: row.get("buffers") })
        .collect()
}
