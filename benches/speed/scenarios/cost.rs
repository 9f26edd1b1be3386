//! What an event costs the database that it lives in.

use crate::bench::Bench;
use crate::cost::Reading;
use crate::engine::Engine;
use crate::report::Goal;
use crate::scenarios::enqueue;

pub const ABOUT: &str = "what events of 300 bytes cost the database: log, commits, dead versions, index entries, time";

const CONCURRENCIES: [usize; 2] = [64, 500];
const CONNECTIONS: u64 = 64;
/// Bytes of log that the claim and the settlement of one event may write.
const WAL_GOAL: Goal = Goal::AtMost(1_300.0);

pub async fn run(bench: &mut Bench) {
    let events = bench.size(100_000, 2_000);
    let outbox = bench.outbox().await;
    let engines = Engine::start_discarding(&outbox.url, CONCURRENCIES).await;
    for round in 0..bench.rounds() {
        bench.say_round(round);
        for (concurrency, engine) in &engines {
            outbox.refill(events).await;
            let before = Reading::take(bench.admin()).await;
            engine.drain(events).await;
            let cost = before.cost_since(bench.admin(), events).await;
            cost.add_to(&mut bench.report, &format!("claim and settle, concurrency {concurrency}"), Some(WAL_GOAL));
        }
        let posted = bench.size(64_000, 640);
        outbox.run("TRUNCATE outbox.event, outbox.attempt").await;
        outbox.settle_down().await;
        let before = Reading::take(bench.admin()).await;
        enqueue::post(&engines[0].1, CONNECTIONS, posted).await;
        let cost = before.cost_since(bench.admin(), posted).await;
        cost.add_to(&mut bench.report, &format!("enqueue, {CONNECTIONS} connections"), None);
    }
    bench
        .report
        .note("For each event, but for commits. Counted on the whole server from a checkpoint on, vacuum included.");
    drop(engines);
    outbox.discard().await;
}
