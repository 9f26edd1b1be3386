//! The normal case, right after a commit: one event is enqueued and processed by its id, one after another.

use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row, SqlStr};
use uuid::Uuid;

use super::http::Poster;
use crate::bench::{Bench, milliseconds};
use crate::client::Client;
use crate::database::{EVENT_TYPE, Outbox};
use crate::engine::{Engine, Setup};
use crate::raw;
use crate::receiver::Receiver;
use crate::report::{Goal, MILLISECONDS};

pub const ABOUT: &str = "enqueue and process by id over HTTP, beside the same statements and POST without the service";

/// Both sides take turns after so many events.
const BLOCK: usize = 50;
const SIDES: [&str; 2] = ["the same statements and POST", "the service"];
const LEASE_MICROS: i64 = 60_000_000;

pub async fn run(bench: &mut Bench) {
    let blocks = bench.size(40, 1);
    let outbox = bench.outbox().await;
    let receiver = Receiver::start().await;
    let engine = Engine::start(Setup::delivering(&outbox.url, 64, receiver.url())).await;
    let mut client = engine.client().await;
    let mut bare = Bare::open(&outbox, receiver.url()).await;
    let mut expected = 0;
    for round in 0..bench.rounds() {
        bench.say_round(round);
        outbox.settle_down().await;
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..blocks {
            let block;
            (bare, block) = without_the_service(bare).await;
            times[0].extend(block);
            let block;
            (client, block) = through_the_service(client).await;
            times[1].extend(block);
        }
        expected += (times[0].len() + times[1].len()) as u64;
        assert_eq!(receiver.received(), expected, "one request for each event");
        for (side, times) in SIDES.into_iter().zip(&mut times) {
            times.sort_unstable();
            for percent in [50, 99] {
                let place = times.len() * percent / 100;
                bench.report.add(&named(side, percent), MILLISECONDS, milliseconds(times[place]));
            }
        }
    }
    for percent in [50, 99] {
        let name = format!("the service of the same without it, p{percent}");
        let goal = Some(Goal::AtMost(2.0));
        bench.report.ratio(&name, &named(SIDES[1], percent), &named(SIDES[0], percent), goal);
    }
    drop(engine);
    outbox.discard().await;
}

fn named(side: &str, percent: usize) -> String {
    format!("{side}, p{percent}")
}

fn payload() -> String {
    format!("{{\"n\":\"00000001\",\"text\":\"{}\"}}", "x".repeat(274))
}

/// A block of one side. It is a task of its own: what the runtime's first thread awaits is woken by way of another.
async fn without_the_service(mut bare: Bare) -> (Bare, Vec<Duration>) {
    let block = tokio::spawn(async move {
        let mut times = Vec::with_capacity(BLOCK);
        for _ in 0..BLOCK {
            times.push(bare.one().await);
        }
        (bare, times)
    });
    block.await.expect("the block ends")
}

/// The same for the other side.
async fn through_the_service(mut client: Client) -> (Client, Vec<Duration>) {
    let block = tokio::spawn(async move {
        let mut times = Vec::with_capacity(BLOCK);
        for _ in 0..BLOCK {
            times.push(two_requests(&mut client).await);
        }
        (client, times)
    });
    block.await.expect("the block ends")
}

async fn two_requests(client: &mut Client) -> Duration {
    let body = format!("{{\"type\":\"{EVENT_TYPE}\",\"payload\":{}}}", payload());
    let began = Instant::now();
    let event: Value = client.post("/v1/events", body.as_bytes()).await.json();
    let path = format!("/v1/events/{}/process", event["id"].as_str().expect("an id"));
    let processed = client.post(&path, b"").await.json();
    let took = began.elapsed();
    assert_eq!(processed["outcome"], "completed", "{processed}");
    took
}

/// What the service does to one event, without the service.
struct Bare {
    connection: PgConnection,
    poster: Poster,
    insert: SqlStr,
    event: SqlStr,
    claim: SqlStr,
    complete: SqlStr,
}

impl Bare {
    async fn open(outbox: &Outbox, receiver: &str) -> Self {
        let (connection, named) = (raw::connect(&outbox.url).await, raw::statements(&outbox.url));
        Self {
            connection,
            poster: Poster::new(receiver),
            insert: named("insert"),
            event: named("event"),
            claim: named("claim_by_id"),
            complete: named("complete"),
        }
    }

    async fn one(&mut self) -> Duration {
        let payload = payload();
        let began = Instant::now();
        let inserted = self.insert(payload).await;
        let id: Uuid = inserted.get("id");
        self.read(id).await;
        let claim = sqlx::query(self.claim.clone()).bind(id).bind(LEASE_MICROS);
        let claimed = claim.fetch_one(&mut self.connection).await.expect("a claim");
        let (id, claim_no) = self.poster.post(claimed).await;
        let complete = sqlx::query(self.complete.clone()).bind([id].as_slice()).bind([claim_no].as_slice());
        complete.fetch_one(&mut self.connection).await.expect("a settlement");
        self.read(id).await;
        began.elapsed()
    }

    async fn insert(&mut self, payload: String) -> PgRow {
        let query = sqlx::query(self.insert.clone())
            .bind([None::<Uuid>].as_slice())
            .bind([EVENT_TYPE].as_slice())
            .bind([None::<&str>].as_slice())
            .bind([payload].as_slice())
            .bind(["{}"].as_slice())
            .bind([None::<&str>].as_slice())
            .bind([None::<Vec<u8>>].as_slice())
            .bind([10].as_slice())
            .bind([None::<time::OffsetDateTime>].as_slice())
            .bind([0_i64].as_slice())
            .bind("1000");
        query.fetch_one(&mut self.connection).await.expect("an insert")
    }

    async fn read(&mut self, id: Uuid) {
        let query = sqlx::query(self.event.clone()).bind(id).bind(false);
        query.fetch_one(&mut self.connection).await.expect("the event");
    }
}
