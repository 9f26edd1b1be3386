//! How much memory the program holds at most, with many small events and with large ones.

use crate::bench::Bench;
use crate::engine::{Engine, Setup};
use crate::receiver::Receiver;
use crate::report::{Goal, MEBIBYTES};

pub const ABOUT: &str = "peak resident memory: a long backlog of small events, and large ones delivered 64 at once";

const CONCURRENCIES: [usize; 2] = [64, 500];
const IN_FLIGHT: usize = 64;
const KIBIBYTE: usize = 1_024;
/// The greatest payload that is accepted by default.
const LARGE: usize = 256 * KIBIBYTE;

pub async fn run(bench: &mut Bench) {
    small(bench).await;
    large(bench).await;
}

async fn small(bench: &mut Bench) {
    let events = bench.size(1_000_000, 4_000);
    let outbox = bench.outbox().await;
    for concurrency in CONCURRENCIES {
        outbox.refill(events).await;
        let engine = Engine::start(Setup::discarding(&outbox.url, concurrency)).await;
        if concurrency == CONCURRENCIES[0] {
            bench.report.add("ready, nothing done", MEBIBYTES, engine.peak_mebibytes());
        }
        engine.drain(events).await;
        let name = format!("{events} events of 300 bytes, no-ops, concurrency {concurrency}");
        bench.report.judge(&name, MEBIBYTES, engine.peak_mebibytes(), Goal::AtMost(64.0));
    }
    outbox.discard().await;
}

async fn large(bench: &mut Bench) {
    let events = bench.size(2_000, 100);
    let outbox = bench.outbox().await;
    // Text that compresses as badly as texts do: the same in every event, but not the same again within it.
    let text = LARGE - r#"{"text":""}"#.len();
    outbox
        .run(format!(
            "INSERT INTO outbox.event (event_type, payload)
             SELECT 'bench.large', ('{{\"text\":\"' || text || '\"}}')::json
             FROM (SELECT left(string_agg(md5(n::text), ''), {text}) AS text FROM generate_series(1, 8192) AS n) AS one,
                  generate_series(1, {events})"
        ))
        .await;
    outbox.settle_down().await;
    let receiver = Receiver::start().await;
    let engine = Engine::start(Setup::delivering(&outbox.url, IN_FLIGHT, receiver.url())).await;
    engine.drain(events).await;
    assert_eq!(receiver.received(), events, "one request for each event");
    let name = format!("{events} events of 256 KiB, delivered, {IN_FLIGHT} in flight");
    bench.report.judge(&name, MEBIBYTES, engine.peak_mebibytes(), Goal::AtMost(128.0));
    drop(engine);
    outbox.discard().await;
}
