//! Budgets: a run ends in time, whatever its receivers do, and spends nothing on what does not fit.

use std::time::Instant;

use futures_util::FutureExt;
use outboxd::processor::RunError;
use outboxd::run::StopReason;

use super::*;
use crate::support::receiver::Reply;

/// How much later than its budget a run may end.
const SLACK: Duration = Duration::from_millis(250);

fn sleeper(time: Duration) -> impl Handler {
    Do(move |_| tokio::time::sleep(time).map(|()| Outcome::Complete).boxed())
}

async fn timed(processor: &Processor, request: RunRequest) -> (RunReport, Duration) {
    let started = Instant::now();
    let report = run_as(processor, request).await;
    (report, started.elapsed())
}

engine_test!(against_a_slow_receiver_a_run_ends_in_time_and_spends_nothing_on_what_is_left, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).after(Duration::from_millis(300)));
    let processor = world.processor(vec![webhook("*", Duration::from_millis(800), &receiver)]);
    world.enqueue_many("a", 1_000).await;
    let budget = Duration::from_millis(2_400);
    let (report, took) = timed(&processor, within(budget)).await;
    assert!(took <= budget + SLACK, "{took:?}");
    assert_eq!((report.stop_reason, report.more), (Some(StopReason::Budget), true), "{report:?}");
    assert_eq!(report.claimed, report.completed, "{report:?}");
    assert!((1..1_000).contains(&report.claimed), "{report:?}");
    assert_eq!(report.claimed, receiver.received().len() as u64);
    assert_eq!((world.count("processing").await, world.count_spent().await), (0, 0));
    assert_eq!(world.sql.count("SELECT count(*) FROM {events} WHERE {claim_no} > 0").await, report.claimed as i64);
});

engine_test!(receivers_that_never_answer_cannot_hold_a_run_beyond_its_budget, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::silence());
    let processor = world.processor(vec![webhook("*", Duration::from_millis(400), &receiver)]);
    world.enqueue_many("a", 500).await;
    let budget = Duration::from_millis(2_000);
    let (report, took) = timed(&processor, within(budget)).await;
    assert!(took <= budget + SLACK, "{took:?}");
    assert_eq!((report.stop_reason, report.more), (Some(StopReason::Budget), true), "{report:?}");
    assert_eq!((report.claimed, world.count_spent().await), (report.retried, report.retried as i64));
});

engine_test!(the_smallest_budget_that_a_refusal_names_gets_something_done, |world| {
    let processor = world.processor(vec![
        route("slow", Duration::from_secs(9), sleeper(Duration::ZERO)),
        route("fast", Duration::from_millis(300), sleeper(Duration::from_millis(50))),
    ]);
    world.enqueue("fast").await;
    let refused = processor.run(within(Duration::from_millis(1_200))).await;
    let Err(RunError::BudgetTooSmall { smallest_max_runtime }) = refused else { panic!("{refused:?}") };
    assert_eq!(smallest_max_runtime, Duration::from_millis(1_300));
    let (report, took) = timed(&processor, within(smallest_max_runtime)).await;
    assert_eq!(report.completed, 1, "{report:?}");
    assert!(took <= smallest_max_runtime + SLACK, "{took:?}");

    let only_slow = RunRequest { types: vec!["slow".to_owned()], ..within(Duration::from_secs(5)) };
    let refused = processor.run(only_slow).await;
    let Err(RunError::BudgetTooSmall { smallest_max_runtime }) = refused else { panic!("{refused:?}") };
    assert_eq!(smallest_max_runtime, Duration::from_secs(10));
});

engine_test!(a_type_that_does_not_fit_waits_and_is_named_while_others_go_on, |world| {
    let processor = world.processor(vec![
        route("slow", Duration::from_secs(60), sleeper(Duration::ZERO)),
        route("fast", Duration::from_secs(1), sleeper(Duration::ZERO)),
    ]);
    let slow = world.enqueue("slow").await;
    world.enqueue_many("fast", 200).await;
    let report = run_as(&processor, within(Duration::from_secs(10))).await;
    assert_eq!((report.completed, report.unfit_types.as_slice()), (200, ["slow".to_owned()].as_slice()), "{report:?}");
    assert_eq!((report.stop_reason, report.more), (Some(StopReason::Drained), false), "{report:?}");
    assert_eq!(world.standing(slow).await, ("pending", 0, 0));
    assert_eq!(run(&processor).await.claimed, 0, "a minute is too short for it, too");
    assert_eq!(run_as(&processor, within(Duration::from_secs(70))).await.completed, 1);
});

engine_test!(nothing_is_claimed_when_less_than_min_remaining_is_left, |world| {
    let slow = sleeper(Duration::from_millis(100));
    let settings = ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() };
    let processor = world.processor_with(settings, vec![route("*", Duration::from_millis(500), slow)]);
    world.enqueue_many("a", 100).await;
    let mut request = within(Duration::from_secs(4));
    request.budget.min_remaining = Duration::from_secs(3);
    let (report, took) = timed(&processor, request).await;
    assert!(took <= Duration::from_millis(1_500) + SLACK, "{took:?}");
    assert!((1..=10).contains(&report.claimed), "{report:?}");
    assert_eq!((report.stop_reason, report.more), (Some(StopReason::Budget), true), "{report:?}");
});

engine_test!(a_run_that_waited_for_a_slot_in_vain_says_that_there_is_more, |world| {
    let settings = ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() };
    let held = Receiver::start().await;
    held.set_default(Reply::status(200).held());
    let quick = route("quick", Duration::from_millis(200), sleeper(Duration::ZERO));
    let processor = world.processor_with(settings, vec![webhook("held", LONG, &held), quick]);
    world.enqueue("held").await;
    let first = tokio::spawn({
        let processor = processor.clone();
        async move { run(&processor).await }
    });
    held.wait_for(1).await;
    world.enqueue("quick").await;
    let report = run_as(&processor, within(Duration::from_millis(1_300))).await;
    assert_eq!((report.stop_reason, report.claimed, report.more), (Some(StopReason::Budget), 0, true), "{report:?}");
    held.release_all();
    assert_eq!(first.await.unwrap().completed, 2);
});

engine_test!(a_budget_and_a_wait_without_end_are_bearable, |world| {
    let processor = world.processor(vec![route("*", LONG, sleeper(Duration::ZERO))]);
    world.enqueue("a").await;
    assert_eq!(run_as(&processor, within(Duration::MAX)).await.completed, 1);
    let processed = processor.process_event(&world.enqueue("a").await.into(), Duration::MAX).await.unwrap();
    assert_eq!(processed.outcome.as_str(), "completed");
    assert_eq!(processor.start(within(Duration::MAX)).await.unwrap().state, RunState::Running);
});
