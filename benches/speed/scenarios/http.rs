//! Signed deliveries to a receiver on loopback, beside the barest loop that claims, posts and settles.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, stream};
use outboxd::handler::webhook::SigningSecret;
use reqwest::Client;
use reqwest::redirect::Policy;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::bench::{Bench, rate};
use crate::engine::{Engine, SECRET, Setup};
use crate::raw::Session;
use crate::receiver::Receiver;
use crate::report::{Goal, RATE};

pub const ABOUT: &str = "signed POSTs to a receiver on loopback, 64 in flight: the engine beside a bare loop";

const IN_FLIGHT: usize = 64;
const LOOPS: usize = 2;
const RAW: &str = "claim, POST and settle in a loop, batches of 100, 2 connections";
/// The default, and one that leaves 64 in the receiver's hands while the next ones are being claimed: an event takes its
/// slot when its claim is sent.
const CONCURRENCIES: [usize; 2] = [IN_FLIGHT, 2 * IN_FLIGHT];

pub async fn run(bench: &mut Bench) {
    let events = bench.size(60_000, 1_000);
    let outbox = bench.outbox().await;
    let receiver = Receiver::start().await;
    let mut engines = Vec::new();
    for concurrency in CONCURRENCIES {
        engines.push((concurrency, Engine::start(Setup::delivering(&outbox.url, concurrency, receiver.url())).await));
    }
    let mut expected = 0;
    for round in 0..bench.rounds() {
        bench.say_round(round);
        outbox.refill(events).await;
        let took = drain(&outbox.url, receiver.url(), events).await;
        bench.report.add(RAW, RATE, rate(events, took));

        for (concurrency, engine) in &engines {
            outbox.refill(events).await;
            let took = engine.drain(events).await;
            bench.report.add(&of_engine(*concurrency), RATE, rate(events, took));
        }
        expected += (1 + CONCURRENCIES.len() as u64) * events;
        assert_eq!(receiver.received(), expected, "one request for each event");
    }
    let sides = CONCURRENCIES.map(of_engine);
    let best = bench.report.best(&[&sides[0], &sides[1]]);
    bench.report.ratio("engine at its best of the bare loop", best, RAW, Some(Goal::AtLeast(0.80)));
    bench.report.ratio("engine 64 of the bare loop", &sides[0], RAW, None);
    drop(engines);
    outbox.discard().await;
}

fn of_engine(concurrency: usize) -> String {
    format!("engine, concurrency {concurrency}")
}

/// Each loop claims a hundred, posts them with its share of what may be in flight, and settles them.
async fn drain(url: &str, receiver: &str, events: u64) -> Duration {
    let poster = Poster::new(receiver);
    let mut sessions = Vec::new();
    for _ in 0..LOOPS {
        sessions.push(Session::open(url).await);
    }
    let began = Instant::now();
    let loops: Vec<_> = sessions
        .into_iter()
        .map(|mut session| {
            let poster = poster.clone();
            tokio::spawn(async move {
                let mut done = 0;
                loop {
                    let rows = session.claim_rows(100).await;
                    if rows.is_empty() {
                        return done;
                    }
                    let posts = stream::iter(rows).map(|row| poster.post(row));
                    let leases: Vec<(Uuid, i64)> = posts.buffer_unordered(IN_FLIGHT / LOOPS).collect().await;
                    done += session.complete(leases).await;
                }
            })
        })
        .collect();
    let mut done = 0;
    for task in loops {
        done += task.await.expect("a loop ends");
    }
    assert_eq!(done, events, "the bare loop delivers everything");
    began.elapsed()
}

/// Sends what the engine sends, by the same client.
#[derive(Clone)]
pub(super) struct Poster {
    client: Client,
    url: String,
    secret: SigningSecret,
}

impl Poster {
    pub(super) fn new(url: &str) -> Self {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().redirect(Policy::none()).no_proxy().referer(false).tcp_nodelay(true);
        let client = builder.pool_max_idle_per_host(128).user_agent("outboxd/bench").build().expect("a client");
        Self { client, url: url.to_owned(), secret: SECRET.parse().expect("a secret") }
    }

    pub(super) async fn post(&self, row: PgRow) -> (Uuid, i64) {
        let (event_id, claim_no): (Uuid, i64) = (row.get("id"), row.get("claim_no"));
        let payload: String = row.get("payload");
        let id = event_id.to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let attempts: i32 = row.get("attempts");
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("outbox-event-type", row.get::<&str, _>("event_type"))
            .header("outbox-attempt", (attempts + 1).to_string())
            .header("outbox-claim", claim_no.to_string())
            .header("outbox-deadline-ms", "30000")
            .header("outbox-claim-token", "a-token-that-is-about-as-long-as-those-of-outboxd-are-sealed-with-its-key")
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", self.secret.sign(&id, now, payload.as_bytes()))
            .header("webhook-id", &id)
            .header("idempotency-key", &id)
            .body(payload);
        let answer = request.timeout(Duration::from_secs(30)).send().await.expect("the receiver answers");
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.bytes().await.expect("the answer ends");
        (event_id, claim_no)
    }
}
