//! Handlers that misbehave cost one attempt of one event each.

use std::time::Instant;

use futures_util::FutureExt;

use super::*;

fn bad_routes() -> Vec<Route> {
    let short = Duration::from_millis(200);
    vec![
        route("panics", LONG, Do(|_| async { panic!("out of cheese") }.boxed())),
        route("panics.early", LONG, Do(|_| panic!("at once"))),
        route("hangs", short, Do(|_| std::future::pending().boxed())),
        route("good", short, Do(|_| async { Outcome::Complete }.boxed())),
        route(
            "blocks",
            short,
            Do(|_| {
                async {
                    std::thread::sleep(Duration::from_secs(4));
                    Outcome::Complete
                }
                .boxed()
            }),
        ),
    ]
}

async fn failed(world: &World, id: Uuid, error: &str) {
    let event = world.event(id).await;
    assert_eq!((event.status.as_str(), event.attempts), ("pending", 1), "{event:?}");
    assert!(event.last_error.as_deref().unwrap().contains(error), "{event:?}");
}

engine_test!(panics_and_hangs_are_one_attempt_each_and_the_run_goes_on, |world| {
    let processor = world.processor(bad_routes());
    let ids = [world.enqueue("panics").await, world.enqueue("panics.early").await, world.enqueue("hangs").await];
    world.enqueue_many("good", 300).await;
    let report = run(&processor).await;
    assert_eq!((report.claimed, report.completed, report.retried), (303, 300, 3), "{report:?}");
    failed(&world, ids[0], "the handler panicked: out of cheese").await;
    failed(&world, ids[1], "the handler panicked: at once").await;
    failed(&world, ids[2], "no complete answer within 200 ms").await;
});

engine_test!(a_handler_that_blocks_its_thread_is_given_up_and_what_it_says_later_is_not_heard, |world| {
    let processor = world.processor(bad_routes());
    let id = world.enqueue("blocks").await;
    world.enqueue_many("good", 300).await;
    let began = Instant::now();
    let budget = Duration::from_secs(2);
    let report = run_as(&processor, within(budget)).await;
    assert!(began.elapsed() < budget + Duration::from_millis(250), "{:?}", began.elapsed());
    assert_eq!((report.claimed, report.completed, report.retried), (301, 300, 1), "{report:?}");
    failed(&world, id, "no complete answer within 200 ms").await;
    tokio::time::sleep(Duration::from_secs(4).saturating_sub(began.elapsed()) + Duration::from_millis(300)).await;
    failed(&world, id, "no complete answer within 200 ms").await;
    world.enqueue("good").await;
    assert_eq!(run(&processor).await.completed, 1);
});

engine_test!(panics_and_hangs_by_id_are_answered_too, |world| {
    let processor = world.processor(bad_routes());
    for (event_type, error) in [("panics", "out of cheese"), ("panics.early", "at once"), ("hangs", "200 ms")] {
        let id = world.enqueue(event_type).await;
        let processed = processor.process_event(&id.into(), PATIENCE).await.unwrap();
        assert_eq!(processed.outcome.as_str(), "pending");
        failed(&world, id, error).await;
    }
});
