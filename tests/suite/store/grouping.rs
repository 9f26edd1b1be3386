//! Single events that are enqueued at the same time: few commits, and for each caller its own answer.

use std::collections::HashSet;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use outboxd::store::{EnqueueError, Enqueued, StoreError};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::enqueueing::{keyed, rows, with_id};
use super::*;
use crate::support::database::TestDb;

/// Enqueues each event by itself, all at the same time.
async fn at_once(store: &Arc<dyn Store>, events: &[NewEvent]) -> Vec<Result<Enqueued, EnqueueError>> {
    let calls = events.chunks(1).map(|event| store.enqueue(event).map(|answer| answer.map(|mut one| one.remove(0))));
    join_all(calls).await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_enqueued_at_once_share_their_commits_on_postgres() {
    let sql = TestDb::empty_postgres().await;
    let store = sql.migrated().await;
    let answers = at_once(&store, &vec![NewEvent::new("a", "1"); 64]).await;
    let ids: HashSet<Uuid> = answers.into_iter().map(|answer| answer.unwrap().event.id.uuid().unwrap()).collect();
    assert_eq!((ids.len(), rows(&sql).await), (64, 64));
    let commits = sql.count("SELECT count(DISTINCT xmin::text) FROM {events}").await;
    assert!(commits <= 16, "{commits} commits for 64 events");
}

store_test!(each_caller_gets_its_own_answer_whatever_becomes_of_its_neighbours, |store, sql| {
    let (taken, mine) = (Uuid::now_v7(), Uuid::now_v7());
    store.enqueue(&[keyed("taken", "1"), with_id(taken, "1")]).await.unwrap();
    let refused = NewEvent { max_attempts: 1_000, ..NewEvent::new("a", "1") };
    let mut events = vec![NewEvent::new("a", "1"); 10];
    events.extend([keyed("taken", "1"), keyed("taken", "2"), with_id(taken, "1"), with_id(taken, "2")]);
    events.extend([refused.clone(), keyed("new", "1"), with_id(mine, "1"), refused]);
    events.extend(vec![NewEvent::new("b", "1"); 10]);
    let answers = at_once(&store, &events).await;

    let said = |index: usize| match &answers[index] {
        Ok(enqueued) if enqueued.created => "created",
        Ok(_) => "replay",
        Err(EnqueueError::KeyReused { index: 0 }) => "key",
        Err(EnqueueError::IdConflict { index: 0 }) => "id",
        Err(EnqueueError::Store(StoreError::Data { .. })) => "refused",
        Err(_) => "failed",
    };
    let special: Vec<&str> = (10..18).map(said).collect();
    assert_eq!(special, ["replay", "key", "replay", "id", "refused", "created", "created", "refused"]);
    assert!((0..10).chain(18..28).all(|index| said(index) == "created"), "{answers:?}");
    assert_eq!(answers[16].as_ref().unwrap().event.id, mine);
    assert_eq!(answers[20].as_ref().unwrap().event.event_type, "b");
    assert_eq!(rows(&sql).await, 2 + 10 + 2 + 10);
    for enqueued in answers.into_iter().flatten() {
        assert_eq!(event(&store, enqueued.event.id.uuid().unwrap()).await, enqueued.event);
    }
});

store_test!(of_one_key_or_id_that_comes_twice_at_once_one_is_made, |store, sql| {
    for round in 0..20 {
        let (key, other, id) = (format!("k{round}"), format!("l{round}"), Uuid::now_v7());
        let mut events = vec![NewEvent::new("a", "1"); 6];
        events.extend([keyed(&key, "1"), keyed(&key, "1"), keyed(&other, "1"), keyed(&other, "2")]);
        events.extend([with_id(id, "1"), NewEvent { id: Some(id), ..keyed(&format!("m{round}"), "1") }]);
        let answers = at_once(&store, &events).await;
        let created = |index: usize| answers[index].as_ref().map(|enqueued| enqueued.created);
        for (first, second) in [(6, 7), (10, 11)] {
            assert_ne!(created(first).unwrap(), created(second).unwrap(), "{answers:?}");
            let ids = [first, second].map(|index| answers[index].as_ref().unwrap().event.id.clone());
            assert_eq!(ids[0], ids[1]);
        }
        let (winner, loser) = if created(8).is_ok() { (8, 9) } else { (9, 8) };
        assert!(created(winner).unwrap());
        assert!(matches!(created(loser), Err(EnqueueError::KeyReused { index: 0 })), "{answers:?}");
    }
    assert_eq!(rows(&sql).await, 20 * 9);
});

store_test!(callers_that_go_away_lose_nothing_and_a_store_that_closes_waits_for_their_events, |store, sql| {
    let events = vec![NewEvent::new("a", "1"); 100];
    let mut calls: Vec<_> = events.chunks(1).map(|event| store.enqueue(event)).collect();
    for call in &mut calls {
        let _ = call.now_or_never();
    }
    drop(calls);
    store.close().await;
    assert_eq!(rows(&sql).await, 100);
});

store_test!(what_was_answered_is_seen_by_others, |store, sql| {
    let other = sql.store().await;
    let calls = (0..40).map(|_| async {
        let answer = store.enqueue(&[NewEvent::new("a", "1")]).await.unwrap().remove(0);
        event(&other, answer.event.id.uuid().unwrap()).await.id == answer.event.id
    });
    assert!(join_all(calls).await.into_iter().all(|seen| seen));
});

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_an_open_transaction_holds_holds_up_nobody_else() {
    let sql = TestDb::empty_postgres().await;
    let store = sql.migrated().await;
    let mut application = PgConnection::connect(&sql.options.url).await.unwrap();
    let mut transaction = application.begin().await.unwrap();
    let insert = "INSERT INTO outbox.event (event_type, payload, idempotency_key) VALUES ('a', '1', 'held')";
    sqlx::raw_sql(AssertSqlSafe(insert)).execute(&mut *transaction).await.unwrap();

    let others: Vec<NewEvent> = (0..60).map(|n| keyed(&format!("free-{n}"), "1")).collect();
    let one = [keyed("held", "1")];
    let blocked = store.enqueue(&one);
    tokio::pin!(blocked);
    let (before, after) = others.split_at(30);
    let (mut first, mut second) = (Box::pin(at_once(&store, before)), Box::pin(at_once(&store, after)));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut blocked).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    let answers: Vec<_> = first.await.into_iter().chain(second.await).collect();
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|enqueued| enqueued.created)), "{answers:?}");
    assert_eq!(rows(&sql).await, 60, "the transaction is still open");

    transaction.commit().await.unwrap();
    match blocked.await {
        Ok(answer) => assert!(!answer[0].created),
        // It was held for longer than a call waits.
        Err(error) => assert!(matches!(error, EnqueueError::Store(StoreError::Locked { .. })), "{error:?}"),
    }
    assert!(!store.enqueue(&one).await.unwrap()[0].created);
}
