//! One type's backlog neither delays another type's events nor hides them.

use std::time::Instant;

use futures_util::FutureExt;
use outboxd::run::StopReason;

use super::*;
use crate::support::receiver::Reply;

/// What counts as prompt, on a machine that does much else.
const PROMPT: Duration = Duration::from_millis(2_500);

/// Two receivers: one holds what it gets, the other answers at once.
async fn receivers() -> (Receiver, Receiver) {
    let held = Receiver::start().await;
    held.set_default(Reply::status(200).held());
    (held, Receiver::start().await)
}

fn start(processor: &Processor) -> tokio::task::JoinHandle<RunReport> {
    let processor = processor.clone();
    tokio::spawn(async move { run(&processor).await })
}

/// Enqueues an event and sees it delivered promptly.
async fn is_prompt(world: &World, event_type: &str, receiver: &Receiver) {
    let before = receiver.received().len();
    let enqueued = Instant::now();
    world.enqueue(event_type).await;
    receiver.wait_for(before + 1).await;
    assert!(enqueued.elapsed() < PROMPT, "{:?}", enqueued.elapsed());
}

engine_test!(a_flood_of_one_type_does_not_delay_another, |world| {
    let (held, prompt) = receivers().await;
    let processor = world.processor(vec![webhook("slow", LONG, &held), webhook("z", LONG, &prompt)]);
    world.enqueue_many("slow", 2_000).await;
    world.enqueue("z").await;
    let began = Instant::now();
    let flooded = start(&processor);
    held.wait_for(60).await;
    prompt.wait_for(1).await;
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
    // The run is under way and knows nothing of these yet.
    is_prompt(&world, "z", &prompt).await;
    is_prompt(&world, "z", &prompt).await;
    processor.begin_shutdown();
    held.release_all();
    let report = flooded.await.unwrap();
    assert_eq!((report.stop_reason, report.more), (Some(StopReason::Shutdown), true), "{report:?}");
});

engine_test!(a_run_delivers_a_type_that_did_not_exist_when_it_began, |world| {
    let (held, prompt) = receivers().await;
    let processor = world.processor(vec![webhook("slow", LONG, &held), webhook("*", LONG, &prompt)]);
    world.enqueue_many("slow", 200).await;
    let flooded = start(&processor);
    held.wait_for(60).await;
    is_prompt(&world, "a.new", &prompt).await;
    is_prompt(&world, "z.new", &prompt).await;
    held.release_all();
    assert_eq!(flooded.await.unwrap().completed, 202);
});

engine_test!(runs_that_overlap_do_not_fill_all_slots_with_one_type_together, |world| {
    let (held, prompt) = receivers().await;
    let processor = world.processor(vec![webhook("slow", LONG, &held), webhook("z", LONG, &prompt)]);
    world.enqueue_many("slow", 300).await;
    let first = start(&processor);
    held.wait_for(60).await;
    let others = [start(&processor), start(&processor)];
    is_prompt(&world, "z", &prompt).await;
    is_prompt(&world, "z", &prompt).await;
    assert_eq!(held.received().len(), 60);
    held.release_all();
    let mut completed = first.await.unwrap().completed;
    for other in others {
        completed += other.await.unwrap().completed;
    }
    assert_eq!(completed, 302);
});

engine_test!(two_floods_together_do_not_delay_a_third_type, |world| {
    let (held, prompt) = receivers().await;
    let processor = world.processor(vec![webhook("slow.*", LONG, &held), webhook("z", LONG, &prompt)]);
    world.enqueue_many("slow.a", 200).await;
    world.enqueue_many("slow.b", 200).await;
    let flooded = start(&processor);
    held.wait_for(60).await;
    is_prompt(&world, "z", &prompt).await;
    held.release_all();
    assert_eq!(flooded.await.unwrap().completed, 401);
});

engine_test!(unrouted_types_wait_are_named_and_hide_nothing, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("zz.*", LONG, &receiver)]);
    for number in 0..100 {
        world.enqueue(&format!("lost.{number:03}")).await;
    }
    world.enqueue_many("lost.000", 500).await;
    let id = world.enqueue("zz.last").await;
    let mut request = within(Duration::from_secs(60));
    request.budget.batch_size = 1;
    let report = run_as(&processor, request).await;
    assert_eq!((report.completed, report.more), (1, false), "{report:?}");
    assert_eq!(world.standing(id).await, ("completed", 0, 1));
    let names: Vec<String> = (0..100).map(|number| format!("lost.{number:03}")).collect();
    assert_eq!(report.unrouted_types, names);
    assert_eq!(world.sql.count("SELECT count(*) FROM {events} WHERE {claim_no} = 0 AND {attempts} = 0").await, 600);
    let idle = run(&processor).await;
    assert_eq!((idle.claimed, idle.more, idle.unrouted_types.len()), (0, false, 100), "{idle:?}");
    assert_eq!(idle.stop_reason, Some(StopReason::Drained));
});

engine_test!(a_run_confined_to_types_or_a_subject_leaves_the_rest, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    for (event_type, subject) in [("a", "x"), ("a", "y"), ("b", "x"), ("c", "x")] {
        let subject = Some(subject.to_owned());
        world.enqueue_as(NewEvent { subject, ..NewEvent::new(event_type, "1") }).await;
    }
    let types = vec!["a".to_owned(), "b".to_owned()];
    let request = RunRequest { types, subject: Some("x".to_owned()), ..within(Duration::from_secs(60)) };
    let report = run_as(&processor, request).await;
    assert_eq!((report.completed, report.more), (2, false), "{report:?}");
    let request = RunRequest { types: vec!["c".to_owned()], ..within(Duration::from_secs(60)) };
    assert_eq!(run_as(&processor, request).await.completed, 1);
    assert_eq!(world.count("pending").await, 1);
});

engine_test!(a_run_gets_round_to_a_thousand_types, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let events: Vec<NewEvent> = (0..1_500).map(|number| NewEvent::new(format!("t.{number}"), "1")).collect();
    for batch in events.chunks(1_000) {
        world.store.enqueue(batch).await.unwrap();
    }
    let report = run(&processor).await;
    assert_eq!((report.completed, report.more), (1_500, false), "{report:?}");
    assert_eq!(receiver.received().len(), 1_500);
});

engine_test!(an_event_that_becomes_due_during_a_run_is_delivered_by_it, |world| {
    let (held, prompt) = receivers().await;
    let processor = world.processor(vec![webhook("slow", LONG, &held), webhook("*", LONG, &prompt)]);
    world.enqueue("slow").await;
    let due = outboxd::event::Due::AfterMs(1_000);
    world.enqueue_as(NewEvent { due, ..NewEvent::new("later", "1") }).await;
    let begun = start(&processor);
    prompt.wait_for(1).await;
    held.release_all();
    assert_eq!(begun.await.unwrap().completed, 2);
});

engine_test!(a_run_gets_its_turn_although_calls_by_id_never_leave_a_slot_free, |world| {
    let brief = || Do(|_| tokio::time::sleep(Duration::from_millis(400)).map(|()| Outcome::Complete).boxed());
    let settings = ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() };
    let processor = world.processor_with(settings, vec![route("*", LONG, brief())]);
    let feeders: Vec<_> = (0..4)
        .map(|_| {
            let (store, processor) = (Arc::clone(&world.store), processor.clone());
            tokio::spawn(async move {
                loop {
                    let id = store.enqueue(&[NewEvent::new("by-id", "1")]).await.unwrap()[0].event.id.clone();
                    processor.process_event(&id, PATIENCE).await.unwrap();
                }
            })
        })
        .collect();
    world.wait_for("processing", 1).await;
    world.enqueue("a").await;
    let request = RunRequest { types: vec!["a".to_owned()], ..within(Duration::from_secs(60)) };
    let report = tokio::time::timeout(PROMPT * 3, run_as(&processor, request)).await;
    feeders.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(report.unwrap().completed, 1);
});
