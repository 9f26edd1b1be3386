//! Retention during runs: whoever sleeps between two calls is cleaned all the same.

use outboxd::retention::Retention;

use super::*;
use crate::support::program::Program;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Older than the default retention of either kind.
const AGES_AGO: Duration = Duration::from_secs(40 * 24 * 60 * 60);

/// Keeps everything for a day.
fn cleaning() -> ProcessorSettings {
    let retention = Some(Retention { completed: DAY, skipped: DAY });
    ProcessorSettings { retention, ..ProcessorSettings::default() }
}

/// An outcome for each type, and an unrouted one.
fn routes() -> Vec<Route> {
    let says = |types: &str, outcome: Outcome| {
        let say = move |_| Box::pin(std::future::ready(outcome.clone())) as BoxFuture<'static, Outcome>;
        route(types, LONG, Do(say))
    };
    let reason = String::new;
    vec![
        says("completes", Outcome::Complete),
        says("skips", Outcome::Skip { reason: reason() }),
        says("dies", Outcome::DeadLetter { error: reason() }),
        says("waits", Outcome::Defer { delay: Some(DAY), reason: reason() }),
    ]
}

/// One event of each fate, all of them old.
async fn aged(world: &World) -> [Uuid; 5] {
    let processor = world.processor(routes());
    let mut ids = Vec::new();
    for event_type in ["completes", "skips", "dies", "waits", "unrouted"] {
        ids.push(world.enqueue(event_type).await);
    }
    assert_eq!(run(&processor).await.claimed, 4);
    for id in &ids {
        world.sql.age(*id, AGES_AGO).await;
    }
    ids.try_into().unwrap()
}

engine_test!(a_run_deletes_what_is_past_its_retention_and_nothing_undelivered, |world| {
    let [completed, skipped, dead, deferred, unrouted] = aged(&world).await;
    let processor = world.processor_with(cleaning(), routes());
    let fresh = world.enqueue("completes").await;

    let report = run(&processor).await;

    assert_eq!((report.claimed, report.purged), (1, 2), "{report:?}");
    for id in [completed, skipped] {
        assert!(world.store.event(&id.into(), false).await.unwrap().is_none());
    }
    assert_eq!(world.standing(fresh).await.0, "completed");
    assert_eq!(world.standing(dead).await.0, "dead_letter");
    assert_eq!(world.standing(deferred).await.0, "pending");
    assert_eq!(world.standing(unrouted).await.0, "pending");
    assert_eq!(world.sql.count("SELECT count(*) FROM {attempts_log}").await, 2, "of the dead letter and the deferral");
    assert_eq!(world.store.run(report.run_id).await.unwrap().unwrap().report.purged, 2);
});

engine_test!(an_instance_cleans_an_outbox_once_a_minute_however_often_it_runs, |world| {
    let processor = world.processor_with(cleaning(), routes());
    assert_eq!(run(&processor).await.purged, 0);
    aged(&world).await;
    assert_eq!(run(&processor).await.purged, 0, "it has looked just now");
    assert_eq!(processor.purge().await, 2, "the timer keeps its own time");
});

engine_test!(an_outbox_without_a_retention_is_never_cleaned, |world| {
    aged(&world).await;
    let processor = world.processor(routes());
    assert_eq!((run(&processor).await.purged, processor.purge().await), (0, 0));
    assert_eq!((world.count("completed").await, world.count("skipped").await), (1, 1));
});

engine_test!(what_cannot_be_deleted_fails_no_run, |world| {
    aged(&world).await;
    let refuse = if world.sql.is_sqlite() {
        "CREATE TRIGGER refuse BEFORE DELETE ON {events} BEGIN SELECT RAISE(ABORT, 'no'); END"
    } else {
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$; \
         CREATE TRIGGER refuse BEFORE DELETE ON {events} FOR EACH ROW EXECUTE FUNCTION refuse()"
    };
    world.sql.sql(refuse).await;
    let report = run(&world.processor_with(cleaning(), Vec::new())).await;
    assert_eq!(report.purged, 0);
    assert_eq!((world.count("completed").await, world.count("skipped").await), (1, 1));
});

engine_test!(a_batch_of_old_events_larger_than_a_statement_takes_is_deleted_at_once, |world| {
    world.enqueue_many("completes", 2_500).await;
    assert_eq!(run(&world.processor(routes())).await.completed, 2_500);
    let ago = world.sql.ago(AGES_AGO);
    world.sql.sql(&format!("UPDATE {{events}} SET {{created_at}} = {ago}, {{processed_at}} = {ago}")).await;
    assert_eq!(run(&world.processor_with(cleaning(), routes())).await.purged, 2_500);
});

engine_test!(the_program_cleans_its_own_outbox_in_a_run_without_a_service, |world| {
    aged(&world).await;
    let program = Program::with_settings("");
    let report = program.json(&["process", "--database-url", &world.sql.options.url]);
    assert_eq!((&report["claimed"], &report["purged"]), (&0.into(), &2.into()), "{report}");
});

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_has_locked_is_passed_over() {
    let world = World::on(TestDb::empty_postgres().await).await;
    let [completed, skipped, ..] = aged(&world).await;
    let pool = sqlx::PgPool::connect(&world.sql.options.url).await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    let lock = "SELECT 1 FROM outbox.event WHERE id = $1 FOR UPDATE";
    sqlx::query(lock).bind(completed).execute(&mut *transaction).await.unwrap();

    let report = run(&world.processor_with(cleaning(), routes())).await;

    assert_eq!(report.purged, 1, "{report:?}");
    assert!(world.store.event(&skipped.into(), false).await.unwrap().is_none());
    assert!(world.store.event(&completed.into(), false).await.unwrap().is_some());
    transaction.rollback().await.unwrap();
}
