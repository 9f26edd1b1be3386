//! Callers that go away and instances that stop: what has begun is settled, nothing else begins.

use std::time::Instant;

use outboxd::event::Status;
use outboxd::processor::{ProcessEventError, RunError};
use outboxd::run::StopReason;

use super::*;
use crate::support::receiver::Reply;

engine_test!(a_caller_that_hangs_up_stops_further_claims_but_no_delivery, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    world.enqueue_many("a", 200).await;
    let call = tokio::spawn({
        let processor = processor.clone();
        async move { run(&processor).await }
    });
    let begun = receiver.wait_for(60).await.len();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    receiver.release_all();
    world.wait_for("completed", i64::try_from(begun).unwrap()).await;
    processor.shut_down(LONG).await;
    assert_eq!(receiver.received().len(), begun);
    assert_eq!((world.count("processing").await, world.count_spent().await), (0, 0));
});

engine_test!(a_shutdown_lets_handlers_finish_and_refuses_new_work, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    world.enqueue_many("a", 200).await;
    let last = world.enqueue("a").await;
    let call = tokio::spawn({
        let processor = processor.clone();
        async move { run(&processor).await }
    });
    let begun = receiver.wait_for(60).await.len() as u64;
    let stopped = tokio::spawn({
        let processor = processor.clone();
        async move { processor.shut_down(LONG).await }
    });
    while !processor.is_shutting_down() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(processor.run(within(LONG * 2)).await, Err(RunError::ShuttingDown)));
    assert!(matches!(processor.start(within(LONG * 2)).await, Err(RunError::ShuttingDown)));
    let refused = processor.process_event(&last.into(), PATIENCE).await;
    assert!(matches!(refused, Err(ProcessEventError::ShuttingDown)), "{refused:?}");
    receiver.release_all();
    stopped.await.unwrap();
    let report = call.await.unwrap();
    assert_eq!((report.stop_reason, report.more), (Some(StopReason::Shutdown), true), "{report:?}");
    assert_eq!((report.claimed, report.completed), (begun, begun), "{report:?}");
    assert_eq!(receiver.received().len() as u64, begun);
});

engine_test!(after_the_grace_handlers_are_cut_off_and_settled_as_time_outs, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::silence());
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    let before = now_micros();
    let call = tokio::spawn({
        let processor = processor.clone();
        async move { run(&processor).await }
    });
    receiver.wait_for(1).await;
    let lease_until = world.event(id).await.lease_until.unwrap();
    let began = Instant::now();
    processor.shut_down(Duration::from_millis(300)).await;
    assert!(began.elapsed() < Duration::from_millis(1_300), "{:?}", began.elapsed());
    let report = call.await.unwrap();
    assert_eq!((report.stop_reason, report.retried), (Some(StopReason::Shutdown), 1), "{report:?}");
    let event = world.event(id).await;
    assert_eq!((event.status, event.attempts), (Status::Pending, 1));
    assert!(event.available_at >= lease_until && lease_until.as_micros() > before, "{event:?}");
    assert_eq!(event.last_error.as_deref(), Some("cut off by a shutdown"));
});

engine_test!(a_call_that_waits_for_a_slot_claims_nothing_once_a_shutdown_has_begun, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let settings = ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() };
    let processor = world.processor_with(settings, vec![webhook("*", LONG, &receiver)]);
    let (first, second) = (world.enqueue("a").await, world.enqueue("a").await);
    assert!(processor.process_event(&first.into(), Duration::ZERO).await.unwrap().still_running);
    receiver.wait_for(1).await;
    let waiting = tokio::spawn({
        let processor = processor.clone();
        async move { processor.process_event(&second.into(), PATIENCE).await }
    });
    let waiting_run = tokio::spawn({
        let processor = processor.clone();
        async move { run(&processor).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let stopped = tokio::spawn({
        let processor = processor.clone();
        async move { processor.shut_down(LONG).await }
    });
    let refused = waiting.await.unwrap();
    assert!(matches!(refused, Err(ProcessEventError::ShuttingDown)), "{refused:?}");
    assert_eq!(waiting_run.await.unwrap().claimed, 0);
    receiver.release_all();
    stopped.await.unwrap();
    assert_eq!(world.standing(second).await, ("pending", 0, 0));
    assert_eq!(receiver.received().len(), 1);
});
