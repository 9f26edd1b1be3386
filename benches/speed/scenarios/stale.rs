//! Statistics that were taken on the empty table and are never taken again, under a steady stream in and out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::PgConnection;

use crate::bench::{Bench, count, rate};
use crate::database::{EVENT_TYPE, Outbox, ask};
use crate::engine::{BATCH, Engine, Setup, process};
use crate::report::{Goal, RATE};

pub const ABOUT: &str =
    "statistics of the empty table, frozen, under a steady stream in and out: does a backlog build up";

const CONCURRENCY: usize = 500;
/// What is put in at most, a second.
const MOST: u64 = 20_000;
/// The share of what the machine can do in and out that is asked of it for a longer time.
const SUSTAINED: f64 = 0.8;
/// How often the producer commits.
const TICK: Duration = Duration::from_millis(20);

pub async fn run(bench: &mut Bench) {
    let able = in_and_out(bench, bench.size(100_000, 2_000)).await;
    bench.report.add("in and out at once, as fast as it goes", RATE, able);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
    let offered = MOST.min((able * SUSTAINED) as u64 / 100 * 100).max(100);
    bench
        .report
        .note(format!("offered {offered} events a second: the lesser of {MOST} and 80 % of what went in and out"));

    let length = bench.size(Duration::from_secs(60), Duration::from_secs(2));
    let outbox = stale_outbox(bench).await;
    let engine = Engine::start(Setup::discarding(&outbox.url, CONCURRENCY)).await;
    let stream = Arc::new(Stream::default());
    let producing = tokio::spawn(produce(outbox.open().await, Arc::clone(&stream), offered, length));
    let watching = tokio::spawn(watch(outbox.open().await, Arc::clone(&stream)));
    let completed = drain(&engine, &stream).await;
    producing.await.expect("the producer ends");
    let backlogs = watching.await.expect("the watcher ends");

    let inserted = stream.inserted.load(Ordering::Relaxed);
    let most = backlogs.iter().copied().max().unwrap_or_default();
    let last = backlogs.last().copied().unwrap_or_default();
    bench.report.add("put in", RATE, rate(inserted, length));
    bench.report.add("completed while it was put in", RATE, rate(completed, length));
    bench.report.add("backlog, the most", "events", count(most));
    bench.report.add("backlog at the end", "events", count(last));
    let seconds = |backlog: u64| count(backlog) / count(offered);
    bench.report.judge("put in of offered", "ratio", rate(inserted, length) / count(offered), Goal::AtLeast(0.98));
    bench.report.judge("backlog at the end, seconds of input", "s", seconds(last), Goal::AtMost(1.0));
    bench.report.note(format!("backlog each second: {}", joined(&backlogs)));
    drop(engine);
    outbox.discard().await;
}

fn joined(backlogs: &[u64]) -> String {
    backlogs.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// An outbox whose statistics say that it is empty, and will go on saying so.
async fn stale_outbox(bench: &Bench) -> Outbox {
    let outbox = bench.outbox().await;
    for table in ["outbox.event", "outbox.attempt"] {
        outbox.run(format!("ANALYZE {table}; ALTER TABLE {table} SET (autovacuum_enabled = false)")).await;
    }
    outbox
}

/// How many events a second go in and come out while nobody waits for the other.
async fn in_and_out(bench: &Bench, events: u64) -> f64 {
    let outbox = bench.outbox().await;
    let engine = Engine::start(Setup::discarding(&outbox.url, CONCURRENCY)).await;
    let stream = Arc::new(Stream::default());
    let mut connection = outbox.open().await;
    let producer = Arc::clone(&stream);
    let began = Instant::now();
    let producing = tokio::spawn(async move {
        let mut left = events;
        while left > 0 {
            let some = left.min(500);
            producer.insert(&mut connection, some).await;
            left -= some;
        }
        producer.ended.store(true, Ordering::Relaxed);
    });
    let mut completed = drain(&engine, &stream).await;
    producing.await.expect("the producer ends");
    completed += engine.drain_all().await;
    assert_eq!(completed, events, "everything comes out");
    let able = rate(events, began.elapsed());
    drop(engine);
    outbox.discard().await;
    able
}

/// What is put in.
#[derive(Default)]
struct Stream {
    inserted: AtomicU64,
    ended: AtomicBool,
}

impl Stream {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    async fn insert(&self, connection: &mut PgConnection, events: u64) {
        let insert = "INSERT INTO outbox.event (event_type, payload)
            SELECT $1, ('{\"n\":\"' || lpad(n::text, 8, '0') || '\",\"text\":\"' || repeat('x', 274) || '\"}')::json
            FROM generate_series(1, $2) AS n";
        let query = sqlx::query(insert).bind(EVENT_TYPE).bind(i64::try_from(events).expect("fits"));
        query.execute(connection).await.expect("an insert");
        self.inserted.fetch_add(events, Ordering::Relaxed);
    }
}

/// Puts in what is due by the clock, tick by tick, for so long.
async fn produce(mut connection: PgConnection, stream: Arc<Stream>, each_second: u64, length: Duration) {
    let began = Instant::now();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut sent = 0;
    while began.elapsed() < length {
        ticks.tick().await;
        let passed = u64::try_from(began.elapsed().min(length).as_micros()).expect("fits");
        let due = (passed * each_second / 1_000_000).saturating_sub(sent);
        if due > 0 {
            stream.insert(&mut connection, due).await;
            sent += due;
        }
    }
    stream.ended.store(true, Ordering::Relaxed);
}

/// Calls without pause until the stream ends, and says how many events were completed.
async fn drain(engine: &Engine, stream: &Stream) -> u64 {
    let mut client = engine.client().await;
    let mut completed = 0;
    while !stream.has_ended() {
        completed += process(&mut client, BATCH).await.completed;
    }
    completed
}

/// What is waiting, second by second until the stream ends.
async fn watch(mut connection: PgConnection, stream: Arc<Stream>) -> Vec<u64> {
    let live = "SELECT count(*)::text FROM outbox.event WHERE processed_at IS NULL";
    ask(&mut connection, "SELECT set_config('enable_seqscan', 'off', false)").await;
    let mut backlogs = Vec::new();
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.tick().await;
    while !stream.has_ended() {
        seconds.tick().await;
        backlogs.push(ask(&mut connection, live).await.parse().expect("a count"));
    }
    backlogs
}
