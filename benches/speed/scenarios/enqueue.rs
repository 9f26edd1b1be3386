//! One event a request, beside what clients reach that insert one row a commit.

use std::time::{Duration, Instant};

use crate::bench::{Bench, rate};
use crate::database::{EVENT_TYPE, Outbox};
use crate::engine::{Engine, Setup};
use crate::report::{Goal, RATE};

pub const ABOUT: &str =
    "one event of 300 bytes a request over HTTP, beside single-row inserts with commit by SQL clients";

/// Clients and how many events they enqueue in full: about as many seconds each.
const SQL_CLIENTS: [(u64, u64); 2] = [(1, 6_000), (16, 32_000)];
const CONNECTIONS: [(u64, u64); 3] = [(1, 6_000), (16, 32_000), (64, 64_000)];

pub async fn run(bench: &mut Bench) {
    let outbox = bench.outbox().await;
    let engine = Engine::start(Setup::discarding(&outbox.url, 64)).await;
    for round in 0..bench.rounds() {
        bench.say_round(round);
        for (clients, events) in SQL_CLIENTS {
            let events = bench.size(events, 20 * clients);
            empty(&outbox).await;
            let took = insert(&outbox, clients, events).await;
            check(&outbox, events).await;
            bench.report.add(&by_sql(clients), RATE, rate(events, took));
        }
        for (connections, events) in CONNECTIONS {
            let events = bench.size(events, 20 * connections);
            empty(&outbox).await;
            let took = post(&engine, connections, events).await;
            check(&outbox, events).await;
            bench.report.add(&by_http(connections), RATE, rate(events, took));
        }
    }
    let goal = Goal::AtLeast(1.5);
    bench.report.ratio("HTTP by 64 connections of SQL by 16 clients", &by_http(64), &by_sql(16), Some(goal));
    bench.report.ratio("HTTP by 16 connections of SQL by 16 clients", &by_http(16), &by_sql(16), None);
    // A rate's inverse is the time of one.
    let goal = Goal::AtMost(2.0);
    bench.report.ratio("time of one request of that of one insert, alone", &by_sql(1), &by_http(1), Some(goal));
    drop(engine);
    outbox.discard().await;
}

fn by_sql(clients: u64) -> String {
    format!("single-row inserts with commit, SQL clients: {clients}")
}

fn by_http(connections: u64) -> String {
    format!("POST /v1/events, connections: {connections}")
}

async fn empty(outbox: &Outbox) {
    outbox.run("TRUNCATE outbox.event, outbox.attempt").await;
    outbox.settle_down().await;
}

async fn check(outbox: &Outbox, events: u64) {
    let written = outbox.ask("SELECT count(*)::text FROM outbox.event").await;
    assert_eq!(written, events.to_string(), "every event is there once");
}

/// Every client writes its share, one row and one commit at a time.
async fn insert(outbox: &Outbox, clients: u64, events: u64) -> Duration {
    let payload = payload();
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(outbox.open().await);
    }
    let began = Instant::now();
    let loops: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let payload = payload.clone();
            tokio::spawn(async move {
                for _ in 0..events / clients {
                    let query =
                        sqlx::query("INSERT INTO outbox.event (event_type, payload) VALUES ($1, $2::text::json)");
                    query.bind(EVENT_TYPE).bind(&payload).execute(&mut connection).await.expect("an insert");
                }
            })
        })
        .collect();
    for task in loops {
        task.await.expect("a client ends");
    }
    began.elapsed()
}

/// Every connection posts its share, one event a request, the next when the answer is there.
pub async fn post(engine: &Engine, connections: u64, events: u64) -> Duration {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(engine.client().await);
    }
    let body = format!("{{\"type\":\"{EVENT_TYPE}\",\"payload\":{}}}", payload());
    let began = Instant::now();
    let loops: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            let request = client.prepared("/v1/events", body.as_bytes());
            tokio::spawn(async move {
                for _ in 0..events / connections {
                    let answer = client.send(&request).await;
                    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
                }
            })
        })
        .collect();
    for task in loops {
        task.await.expect("a connection ends");
    }
    began.elapsed()
}

fn payload() -> String {
    format!("{{\"n\":\"00000001\",\"text\":\"{}\"}}", "x".repeat(274))
}
