//! Locks that the application holds: on its rows they are passed by, on everything they are waited out.

use std::time::Instant;

use outboxd::processor::ProcessedOutcome;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use super::*;
use crate::support::receiver::Reply;

/// How long the application holds everything.
const HELD: Duration = Duration::from_millis(1_500);

/// Runs these statements in one transaction, and undoes it after a while.
async fn hold(url: String, postgres: String, time: Duration) {
    if url.starts_with("sqlite") {
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut connection).await.unwrap();
        tokio::time::sleep(time).await;
        sqlx::raw_sql("ROLLBACK").execute(&mut connection).await.unwrap();
    } else {
        let mut connection = PgConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {postgres}"))).execute(&mut connection).await.unwrap();
        tokio::time::sleep(time).await;
        sqlx::raw_sql("ROLLBACK").execute(&mut connection).await.unwrap();
    }
}

engine_test!(a_settlement_waits_for_an_application_that_holds_the_table, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    world.enqueue_many("a", 20).await;
    let delivering = tokio::spawn(async move { run(&processor).await });
    receiver.wait_for(20).await;
    let lock = "LOCK TABLE outbox.event IN EXCLUSIVE MODE".to_owned();
    let held = tokio::spawn(hold(world.sql.options.url.clone(), lock, HELD));
    tokio::time::sleep(Duration::from_millis(300)).await;
    receiver.release_all();
    let report = delivering.await.unwrap();
    assert_eq!((report.claimed, report.completed), (20, 20), "{report:?}");
    held.await.unwrap();
    assert_eq!(receiver.received().len(), 20);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_that_the_application_has_locked_is_passed_by_and_found_later() {
    let world = World::on(TestDb::empty_postgres().await).await;
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let locked = world.enqueue("a").await;
    world.enqueue_many("a", 100).await;
    let lock = format!("SELECT FROM outbox.event WHERE id = '{locked}' FOR UPDATE");
    let held = tokio::spawn(hold(world.sql.options.url.clone(), lock, HELD * 2));
    tokio::time::sleep(Duration::from_millis(300)).await;

    let began = Instant::now();
    let report = run(&processor).await;
    let by_id = processor.process_event(&locked.into(), PATIENCE).await.unwrap();
    assert!(began.elapsed() < HELD, "{:?}", began.elapsed());
    assert_eq!((report.completed, by_id.outcome), (100, ProcessedOutcome::Processing), "{report:?}");
    assert_eq!(world.standing(locked).await, ("pending", 0, 0));

    held.await.unwrap();
    assert_eq!(run(&processor).await.completed, 1);
    assert_eq!(world.standing(locked).await, ("completed", 0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_locked_row_holds_up_neither_the_settlement_of_others_nor_the_end_of_the_budget() {
    let world = World::on(TestDb::empty_postgres().await).await;
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let processor = world.processor(vec![webhook("*", Duration::from_secs(2), &receiver)]);
    let locked = world.enqueue("a").await;
    world.enqueue_many("a", 9).await;
    let began = Instant::now();
    let delivering = tokio::spawn(async move { run_as(&processor, within(Duration::from_secs(5))).await });
    receiver.wait_for(10).await;
    let lock = format!("SELECT FROM outbox.event WHERE id = '{locked}' FOR UPDATE");
    let held = tokio::spawn(hold(world.sql.options.url.clone(), lock, Duration::from_secs(7)));
    tokio::time::sleep(Duration::from_millis(300)).await;
    receiver.release_all();
    let report = delivering.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(6), "the budget was 5 s: {:?}", began.elapsed());
    assert_eq!((report.claimed, report.completed, report.lease_lost), (10, 9, 1), "{report:?}");
    held.await.unwrap();
    world.wait_for("completed", 10).await;
    assert_eq!(receiver.received().len(), 10);
}
