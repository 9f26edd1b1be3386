//! Runs that overlap, in one instance and in several.

use std::collections::HashMap;
use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::*;

const EVENTS: usize = 2_000;

/// A failure that no run here sees again.
fn much_later() -> Outcome {
    Outcome::Retry { error: "no".to_owned(), retry_after: Some(Duration::from_secs(3_600)) }
}

engine_test!(four_runs_of_two_instances_deliver_each_of_2000_events_exactly_once, |world| {
    world.enqueue_many("a", EVENTS / 2).await;
    world.enqueue_many("b", EVENTS / 2).await;
    let seen: Arc<Mutex<HashMap<Uuid, usize>>> = Arc::default();
    let mut processors = Vec::new();
    for _ in 0..2 {
        let seen = Arc::clone(&seen);
        let handler = Do(move |event: ClaimedEvent| {
            *seen.lock().unwrap().entry(event.lease.event_id.uuid().unwrap()).or_default() += 1;
            async move {
                tokio::task::yield_now().await;
                // Every tenth fails once, so that settlements are of several kinds.
                if event.lease.event_id.uuid().unwrap().as_u128().is_multiple_of(10) {
                    much_later()
                } else {
                    Outcome::Complete
                }
            }
            .boxed()
        });
        let registry = Registry::new(vec![route("*", LONG, handler)]).unwrap();
        processors.push(Processor::new(world.sql.store().await, registry, ProcessorSettings::default()).unwrap());
    }
    let runs = (0..4).map(|number| run(&processors[number % 2]));
    let reports = join_all(runs).await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), EVENTS);
    assert!(seen.values().all(|count| *count == 1));
    let sum = |field: fn(&RunReport) -> u64| reports.iter().map(field).sum::<u64>();
    assert_eq!(sum(|report| report.claimed), EVENTS as u64);
    let expected = seen.keys().filter(|id| id.as_u128().is_multiple_of(10)).count() as u64;
    assert_eq!(sum(|report| report.retried), expected);
    assert_eq!(sum(|report| report.completed), EVENTS as u64 - expected);
    assert_eq!(sum(|report| report.lease_lost + report.released + report.reaped), 0);
    assert_eq!(world.count("processing").await, 0);
    assert_eq!(world.count_spent().await, i64::try_from(expected).unwrap());
});

engine_test!(a_batch_takes_exactly_as_many_as_it_may, |world| {
    world.enqueue_many("a", 60).await;
    world.enqueue_many("b", 60).await;
    let processor = world.processor(vec![route("*", LONG, Do(|_| async { Outcome::Complete }.boxed()))]);
    let mut request = within(Duration::from_secs(60));
    for (batch_size, left) in [(1, 119), (7, 112), (100, 12)] {
        request.budget.batch_size = batch_size;
        let report = run_as(&processor, request.clone()).await;
        assert_eq!((report.claimed, report.more), (u64::from(batch_size), true), "{report:?}");
        assert_eq!(report.stop_reason, Some(outboxd::run::StopReason::BatchSize));
        assert_eq!(world.count("pending").await, left);
    }
    request.budget.batch_size = 12;
    let report = run_as(&processor, request).await;
    assert_eq!((report.claimed, report.more), (12, false), "{report:?}");
});
