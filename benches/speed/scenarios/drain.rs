//! No-op events through the whole engine, beside a loop of its own statements.

use crate::bench::{Bench, rate};
use crate::engine::Engine;
use crate::raw;
use crate::report::{Goal, MEBIBYTES, RATE};

pub const ABOUT: &str = "no-op events, completed ones kept: the engine over HTTP beside a raw loop of its statements";

/// Concurrency that a service uses when its settings do not say, and two that one with nothing but no-ops would be given.
const CONCURRENCIES: [usize; 3] = [64, 500, 1_000];
const BATCHES: [i32; 2] = [100, 500];

pub async fn run(bench: &mut Bench) {
    let events = bench.size(100_000, 2_000);
    let outbox = bench.outbox().await;
    let engines = Engine::start_discarding(&outbox.url, CONCURRENCIES).await;
    for round in 0..bench.rounds() {
        bench.say_round(round);
        for batch in BATCHES {
            outbox.refill(events).await;
            let took = raw::drain(&outbox.url, batch, events).await;
            bench.report.add(&raw_loop(batch), RATE, rate(events, took));
        }
        for (concurrency, engine) in &engines {
            outbox.refill(events).await;
            let took = engine.drain(events).await;
            bench.report.add(&of_engine(*concurrency), RATE, rate(events, took));
        }
    }
    for (concurrency, engine) in &engines {
        bench.report.add(&format!("{}, peak memory", of_engine(*concurrency)), MEBIBYTES, engine.peak_mebibytes());
    }
    let wide = [of_engine(500), of_engine(1_000)];
    let best = bench.report.best(&[&wide[0], &wide[1]]);
    let goal = Goal::AtLeast(0.80);
    bench.report.ratio("engine at its best of raw loop 100", best, &raw_loop(100), Some(goal));
    bench.report.ratio("engine at its best of raw loop 500", best, &raw_loop(500), Some(goal));
    bench.report.ratio("engine 64 of raw loop 100", &of_engine(64), &raw_loop(100), None);
    drop(engines);
    outbox.discard().await;
}

fn raw_loop(batch: i32) -> String {
    format!("raw loop, batches of {batch}, 2 connections")
}

fn of_engine(concurrency: usize) -> String {
    format!("engine, concurrency {concurrency}")
}
