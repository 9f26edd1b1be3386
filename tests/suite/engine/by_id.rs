//! One event by its id: safe to race with itself and with runs, and every answer is one of the contract's.

use futures_util::future::join_all;
use outboxd::event::Due;
use outboxd::processor::{ProcessEventError, Processed, ProcessedOutcome};

use super::*;
use crate::support::receiver::Reply;

fn plain(outcome: ProcessedOutcome) -> Processed {
    Processed { outcome, reason: None, still_running: false }
}

async fn process(processor: &Processor, id: Uuid) -> Processed {
    processor.process_event(&id.into(), PATIENCE).await.unwrap()
}

/// The reason why the event stays pending.
async fn reason(processor: &Processor, id: Uuid) -> String {
    let processed = process(processor, id).await;
    assert_eq!((processed.outcome, processed.still_running), (ProcessedOutcome::Pending, false), "{processed:?}");
    processed.reason.unwrap()
}

engine_test!(twenty_calls_and_three_runs_at_once_make_one_delivery, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).after(Duration::from_millis(150)));
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    let runs = join_all((0..3).map(|_| run(&processor)));
    let calls = join_all((0..20).map(|_| process(&processor, id)));
    let (reports, answers) = tokio::join!(runs, calls);
    assert_eq!(receiver.received().len(), 1);
    let legal = [plain(ProcessedOutcome::Completed), plain(ProcessedOutcome::Processing)];
    assert!(answers.iter().all(|answer| legal.contains(answer)), "{answers:?}");
    let by_runs: u64 = reports.iter().map(|report| report.completed).sum();
    let by_id = answers.iter().filter(|answer| answer.outcome == ProcessedOutcome::Completed).count();
    assert!(by_runs == 1 || by_id >= 1, "{reports:?} {answers:?}");
    assert_eq!(world.standing(id).await, ("completed", 0, 1));
});

engine_test!(each_state_of_an_event_has_its_answer, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("a", LONG, &receiver)]);

    let unknown = processor.process_event(&Uuid::now_v7().into(), PATIENCE).await;
    assert!(matches!(unknown, Err(ProcessEventError::NotFound)), "{unknown:?}");

    let later = world.enqueue_as(NewEvent { due: Due::AfterMs(60_000), ..NewEvent::new("a", "1") }).await;
    assert!(reason(&processor, later).await.contains("not due"));
    let unrouted = world.enqueue("b").await;
    assert!(reason(&processor, unrouted).await.contains("no route"));
    assert_eq!(world.standing(unrouted).await, ("pending", 0, 0));

    for (reply, outcome) in [
        (Reply::status(200), ProcessedOutcome::Completed),
        (Reply::status(410), ProcessedOutcome::Skipped),
        (Reply::status(422), ProcessedOutcome::DeadLetter),
    ] {
        receiver.then(reply);
        let id = world.enqueue("a").await;
        assert_eq!(process(&processor, id).await, plain(outcome));
        assert_eq!(process(&processor, id).await, plain(outcome), "the second time nothing happens");
    }
    for reply in [Reply::status(500), Reply::status(429)] {
        receiver.then(reply);
        let id = world.enqueue("a").await;
        assert_eq!(process(&processor, id).await, plain(ProcessedOutcome::Pending));
    }
    assert_eq!(receiver.received().len(), 5);
});

engine_test!(an_event_in_other_hands_is_left_there_until_its_lease_ends, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    world.store.claim_by_id(&id.into(), LONG).await.unwrap().unwrap();
    assert_eq!(process(&processor, id).await, plain(ProcessedOutcome::Processing));
    assert!(receiver.received().is_empty());

    world.sql.expire_lease(id).await;
    assert_eq!(process(&processor, id).await, plain(ProcessedOutcome::Completed));
    assert_eq!(world.standing(id).await, ("completed", 1, 2));
    let log = world.store.attempts(&id.into()).await.unwrap();
    assert_eq!((log[0].outcome.as_str(), log[0].error.as_deref()), ("expired", Some("claim expired")));
    assert_eq!(receiver.received()[0].header("outbox-attempt"), Some("2"));

    let last = world.enqueue_as(NewEvent { max_attempts: 1, ..NewEvent::new("a", "1") }).await;
    world.store.claim_by_id(&last.into(), LONG).await.unwrap().unwrap();
    world.sql.expire_lease(last).await;
    assert_eq!(process(&processor, last).await, plain(ProcessedOutcome::DeadLetter));
    assert_eq!(receiver.received().len(), 1);
});

engine_test!(a_wait_that_runs_out_leaves_a_delivery_that_goes_on, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    let processed = processor.process_event(&id.into(), Duration::ZERO).await.unwrap();
    let expected = Processed { still_running: true, ..plain(ProcessedOutcome::Processing) };
    assert_eq!(processed, expected);
    receiver.wait_for(1).await;
    assert_eq!(process(&processor, id).await, plain(ProcessedOutcome::Processing));
    receiver.release_all();
    world.wait_for("completed", 1).await;
    assert_eq!(receiver.received().len(), 1);
});

engine_test!(a_call_that_is_dropped_leaves_a_delivery_that_goes_on, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    let call = tokio::spawn(async move { process(&processor, id).await });
    receiver.wait_for(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    receiver.release_all();
    world.wait_for("completed", 1).await;
});

engine_test!(when_all_slots_are_taken_the_event_is_limited, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let settings = ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() };
    let processor = world.processor_with(settings, vec![webhook("*", LONG, &receiver)]);
    let (first, second) = (world.enqueue("a").await, world.enqueue("a").await);
    assert!(processor.process_event(&first.into(), Duration::ZERO).await.unwrap().still_running);
    receiver.wait_for(1).await;
    let limited = processor.process_event(&second.into(), Duration::from_millis(100)).await.unwrap();
    assert_eq!(limited.outcome, ProcessedOutcome::Pending);
    assert!(limited.reason.unwrap().contains("limited"));
    assert_eq!(world.standing(second).await, ("pending", 0, 0));
    receiver.release_all();
    assert_eq!(process(&processor, second).await, plain(ProcessedOutcome::Completed));
});
