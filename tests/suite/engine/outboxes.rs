//! Several outboxes in one instance: one budget, one batch, the same slots, and one report.

use std::sync::atomic::{AtomicUsize, Ordering};

use outboxd::handler::Discard;
use outboxd::processor::{OutboxParts, Outboxes, OutboxesError, RunError};
use outboxd::run::StopReason;
use outboxd::store::RunPage;
use tokio::sync::Semaphore;

use super::*;

async fn another() -> World {
    World::on(TestDb::empty_sqlite().await).await
}

fn parts(name: &str, world: &World, concurrency: usize, routes: Vec<Route>) -> OutboxParts {
    let settings = ProcessorSettings { concurrency, ..ProcessorSettings::default() };
    let registry = Registry::new(routes).unwrap();
    OutboxParts { name: name.to_owned(), store: Arc::clone(&world.store), registry, settings }
}

fn done() -> Vec<Route> {
    vec![route("*", LONG, Discard)]
}

/// Outboxes whose events are delivered at once.
fn outboxes(worlds: &[(&str, &World)]) -> Outboxes {
    Outboxes::new(worlds.iter().map(|(name, world)| parts(name, world, 64, done())).collect()).unwrap()
}

fn batch_of(batch_size: u32) -> RunRequest {
    let request = within(Duration::from_secs(60));
    RunRequest { budget: Budget { batch_size, ..request.budget }, ..request }
}

async fn run_all(outboxes: &Outboxes, request: RunRequest) -> RunReport {
    let report = outboxes.run(request, None).await.unwrap();
    assert_sums(&report);
    report
}

async fn kept_runs(world: &World) -> Vec<RunReport> {
    let page = RunPage { after: None, limit: 10 };
    world.store.runs(&page).await.unwrap().into_iter().map(|run| run.report).collect()
}

engine_test!(a_batch_holds_over_all_outboxes_and_each_has_its_share_of_it, |first| {
    let second = another().await;
    let both = outboxes(&[("default", &first), ("orders", &second)]);
    first.enqueue_many("a", 100).await;
    second.enqueue_many("a", 100).await;
    let report = run_all(&both, batch_of(51)).await;
    assert_eq!((report.claimed, report.stop_reason, report.more), (51, Some(StopReason::BatchSize), true));
    let (one, other) = (first.count("completed").await, second.count("completed").await);
    assert!(one.min(other) == 25 && one.max(other) == 26, "{one} {other}");
    assert_eq!(kept_runs(&first).await, [report]);
    assert_eq!(kept_runs(&second).await, []);
});

engine_test!(what_an_outbox_does_not_need_of_the_batch_is_the_others, |first| {
    let second = another().await;
    let both = outboxes(&[("default", &first), ("orders", &second)]);
    first.enqueue_many("a", 100).await;
    second.enqueue_many("a", 3).await;
    let report = run_all(&both, batch_of(50)).await;
    assert_eq!((report.claimed, second.count("completed").await), (50, 3));
    let report = run_all(&both, batch_of(1_000)).await;
    assert_eq!((report.claimed, report.stop_reason, report.more), (53, Some(StopReason::Drained), false));
});

engine_test!(batches_smaller_than_the_number_of_outboxes_drain_all_of_them, |first| {
    let (second, third) = (another().await, another().await);
    let all = outboxes(&[("default", &first), ("b", &second), ("c", &third)]);
    for world in [&first, &second, &third] {
        world.enqueue_many("a", 4).await;
    }
    let mut claimed = Vec::new();
    while claimed.iter().sum::<u64>() < 12 {
        claimed.push(run_all(&all, batch_of(2)).await.claimed);
    }
    assert_eq!(claimed, [2; 6]);
});

engine_test!(an_outbox_whose_database_fails_does_not_hold_up_the_others, |first| {
    let second = another().await;
    let both = outboxes(&[("default", &first), ("orders", &second)]);
    first.enqueue_many("a", 10).await;
    second.store.close().await;
    let error = both.run(batch_of(10), None).await.unwrap_err();
    let RunError::Store { partial: Some(partial), .. } = error else { panic!("{error:?}") };
    assert_eq!((partial.completed, partial.stop_reason), (10, Some(StopReason::Error)));
    assert_eq!(kept_runs(&first).await, [*partial]);
    // With nothing done there is nothing to say of it.
    let error = both.run(batch_of(10), None).await.unwrap_err();
    assert!(matches!(error, RunError::Store { partial: None, .. }), "{error:?}");
});

engine_test!(the_backlog_of_one_outbox_leaves_slots_to_another, |first| {
    let second = another().await;
    let gate = Arc::new(Semaphore::new(0));
    let running = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let held = |running: &Arc<AtomicUsize>| {
        let (running, gate) = (Arc::clone(running), Arc::clone(&gate));
        let handler = Do(move |_| {
            let (running, gate) = (Arc::clone(&running), Arc::clone(&gate));
            running.fetch_add(1, Ordering::SeqCst);
            let ended: BoxFuture<'static, Outcome> = Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                running.fetch_sub(1, Ordering::SeqCst);
                Outcome::Complete
            });
            ended
        });
        vec![route("*", Duration::from_secs(50), handler)]
    };
    let both = Outboxes::new(vec![
        parts("default", &first, 16, held(&running[0])),
        parts("orders", &second, 16, held(&running[1])),
    ]);
    let both = both.unwrap();
    first.enqueue_many("a", 200).await;
    let begun = tokio::spawn({
        let both = both.clone();
        async move { run_all(&both, batch_of(10_000)).await }
    });
    let wait_for = async |outbox: usize, least: usize| {
        let ends_at = tokio::time::Instant::now() + PATIENCE;
        while running[outbox].load(Ordering::SeqCst) < least {
            assert!(tokio::time::Instant::now() < ends_at, "{running:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // Alone it has all slots but the one that is always kept.
    wait_for(0, 15).await;
    second.enqueue_many("a", 200).await;
    // Each slot that becomes free goes to the other until both hold as much.
    wait_for(1, 1).await;
    gate.add_permits(40);
    wait_for(1, 7).await;
    gate.add_permits(1_000);
    assert_eq!(begun.await.unwrap().completed, 400);
});

engine_test!(one_outbox_can_be_served_alone_and_keeps_its_own_runs, |first| {
    let second = another().await;
    let both = outboxes(&[("default", &first), ("orders", &second)]);
    first.enqueue("a").await;
    second.enqueue("a").await;
    let report = both.run(batch_of(10), Some("orders")).await.unwrap();
    assert_eq!((report.completed, first.count("pending").await), (1, 1));
    assert_eq!(kept_runs(&second).await, [report]);
    let error = both.run(batch_of(10), Some("other")).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no outbox of this name; valid are: `default`, `orders`");
});

engine_test!(a_budget_is_judged_by_the_routes_of_all_outboxes, |first| {
    let second = another().await;
    let slow = |seconds| vec![route("*", Duration::from_secs(seconds), Discard)];
    let both = Outboxes::new(vec![parts("default", &first, 4, slow(30)), parts("orders", &second, 4, slow(10))]);
    let both = both.unwrap();
    first.enqueue("a").await;
    second.enqueue("a").await;
    let error = both.run(within(Duration::from_secs(5)), None).await.unwrap_err();
    let smallest = Duration::from_secs(11);
    assert!(
        matches!(error, RunError::BudgetTooSmall { smallest_max_runtime } if smallest_max_runtime == smallest),
        "{error:?}"
    );
    let report = run_all(&both, within(smallest)).await;
    assert_eq!((report.completed, report.unfit_types), (1, vec!["a".to_owned()]));
});

engine_test!(a_shutdown_is_every_outboxes, |first| {
    let second = another().await;
    let both = outboxes(&[("default", &first), ("orders", &second)]);
    let report = both.start(batch_of(10), None).await.unwrap();
    assert_eq!(report.state, RunState::Running);
    both.shut_down(LONG).await;
    let kept = first.store.run(report.run_id).await.unwrap().unwrap();
    assert_eq!(kept.report.state, RunState::Finished);
    assert!(both.iter().all(Processor::is_shutting_down));
    assert!(matches!(both.run(batch_of(1), None).await, Err(RunError::ShuttingDown)));
});

#[tokio::test]
async fn outboxes_need_names_of_their_own() {
    let world = another().await;
    let twice = Outboxes::new(vec![parts("a", &world, 4, done()), parts("a", &world, 4, done())]);
    assert_eq!(twice.err(), Some(OutboxesError::SameName { name: "a".to_owned() }));
    assert_eq!(Outboxes::new(Vec::new()).err(), Some(OutboxesError::None));
}
