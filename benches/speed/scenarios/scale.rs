//! Several instances on one database, called at once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::bench::{Bench, count, rate};
use crate::database::{Outbox, State};
use crate::engine::{Engine, Setup};
use crate::report::{Goal, RATE, RATIO};

pub const ABOUT: &str =
    "1, 2 and 4 instances on one database, called at once: the sum of their rates, deadlocks, fair lanes";

const CONCURRENCY: usize = 500;
const INSTANCES: [usize; 3] = [1, 2, 4];
const TYPES: u64 = 4;

pub async fn run(bench: &mut Bench) {
    let events = bench.size(100_000, 2_000);
    let outbox = bench.outbox().await;
    let mut engines = Vec::new();
    for _ in 0..INSTANCES[INSTANCES.len() - 1] {
        engines.push(Engine::start(Setup::discarding(&outbox.url, CONCURRENCY)).await);
    }
    for round in 0..bench.rounds() {
        bench.say_round(round);
        for instances in INSTANCES {
            outbox.run("TRUNCATE outbox.event, outbox.attempt").await;
            outbox.insert_as(events, TYPES, State::Pending).await;
            outbox.settle_down().await;
            let took = drain(&engines[..instances], events).await;
            bench.report.add(&together(instances), RATE, rate(events, took));
            bench.report.judge(&fairness(instances), RATIO, first_of_last(&outbox, took).await, Goal::AtLeast(0.80));
        }
    }
    for instances in &INSTANCES[1..] {
        let name = format!("{instances} instances of one");
        bench.report.ratio(&name, &together(*instances), &together(1), Some(Goal::AtLeast(0.95)));
    }
    let deadlocks = "SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()";
    let deadlocks = outbox.ask(deadlocks).await.parse().expect("a count");
    bench.report.judge("deadlocks", "deadlocks", count(deadlocks), Goal::AtMost(0.0));
    drop(engines);
    outbox.discard().await;
}

fn together(instances: usize) -> String {
    format!("{instances} at once, concurrency {CONCURRENCY} each")
}

fn fairness(instances: usize) -> String {
    format!("{instances} at once, {TYPES} types: first type done of last type done")
}

/// All of them until nothing is left; every event must be there once.
async fn drain(engines: &[Engine], events: u64) -> Duration {
    let began = Instant::now();
    let completed: u64 = join_all(engines.iter().map(Engine::drain_all)).await.into_iter().sum();
    assert_eq!(completed, events, "the instances drain everything");
    began.elapsed()
}

/// When the first type was done, as a share of the time until the last was. With lanes that take turns it is nearly 1.
async fn first_of_last(outbox: &Outbox, took: Duration) -> f64 {
    let earlier = "SELECT extract(epoch FROM max(done_at) - min(done_at))::text
        FROM (SELECT max(processed_at) AS done_at FROM outbox.event GROUP BY event_type) AS each_type";
    let earlier: f64 = outbox.ask(earlier).await.parse().expect("seconds");
    1.0 - earlier / took.as_secs_f64()
}
