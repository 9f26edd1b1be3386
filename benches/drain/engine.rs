//! The engine under measurement: the same processor that the service runs, with the handler that does nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outboxd::budget::Budget;
use outboxd::handler::{Discard, Pattern, Registry, Route};
use outboxd::processor::{Processor, ProcessorSettings, RunRequest};
use outboxd::run::Trigger;
use outboxd::store::{Store, StoreOptions, connect};

pub async fn open(url: &str) -> Arc<dyn Store> {
    let store = connect(&StoreOptions::new(url)).await.expect("the database opens");
    store.migrate().await.expect("the schema is made");
    store
}

fn processor(store: &Arc<dyn Store>, concurrency: usize) -> Processor {
    let route = Route::new("discard", vec![Pattern::All], Arc::new(Discard));
    let registry = Registry::new(vec![route]).expect("one route");
    let settings = ProcessorSettings { concurrency, ..ProcessorSettings::default() };
    Processor::new(Arc::clone(store), registry, settings).expect("valid settings")
}

/// Runs with batches of up to 10,000 until so many events are completed; every one of them must be there.
pub async fn drain(store: &Arc<dyn Store>, concurrency: usize, events: u64) -> Duration {
    let processor = processor(store, concurrency);
    let began = Instant::now();
    let mut left = events;
    while left > 0 {
        let batch_size = u32::try_from(left.min(10_000)).expect("at most 10,000");
        let budget = Budget { batch_size, max_runtime: Duration::from_secs(300), ..Budget::default() };
        let report = processor.run(RunRequest { budget, ..RunRequest::new(Trigger::Cli) }).await.expect("a run");
        assert_eq!(report.claimed, report.completed, "{report:?}");
        assert!(report.completed > 0, "the backlog ended early: {report:?}");
        left -= report.completed;
    }
    began.elapsed()
}

/// The mean time of a run that finds nothing.
pub async fn idle(store: &Arc<dyn Store>, runs: u32) -> Duration {
    let processor = processor(store, 64);
    let began = Instant::now();
    for _ in 0..runs {
        let report = processor.run(RunRequest::new(Trigger::Cli)).await.expect("a run");
        assert_eq!(report.claimed, 0, "{report:?}");
    }
    began.elapsed() / runs
}

/// This process's peak resident memory. The engine, the benchmark and, for SQLite, the database live in it.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number of KiB")
}
