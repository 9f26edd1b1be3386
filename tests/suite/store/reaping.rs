//! Expired leases are taken back: all of them, and nothing but them.

use outboxd::event::Status;
use outboxd::outcome::Change;
use outboxd::store::ReapLane;

use super::*;

fn front(event_type: &str) -> ReapLane {
    ReapLane { event_type: event_type.to_owned(), after: None }
}

store_test!(an_expired_lease_goes_back_to_pending, |store, sql| {
    let claimed = claimed(&store, "a").await;
    let id = claimed.lease.event_id.clone();
    sql.expire_lease(id.uuid().unwrap()).await;
    let page = store.reap(&[front("a")], 10).await.unwrap();
    assert_eq!(page.unfinished, []);
    assert_eq!(page.reaped.len(), 1);
    assert_eq!((page.reaped[0].event_id.clone(), page.reaped[0].status), (id.clone(), Status::Pending));
    assert_eq!(page.reaped[0].event_type, "a");
    let event = event(&store, id.uuid().unwrap()).await;
    assert_eq!((event.status, event.attempts, event.claim_no), (Status::Pending, 1, 1));
    assert_eq!((event.locked_at, event.lease_until, event.deferred_since), (None, None, None));
    assert_eq!(event.last_error.as_deref(), Some("claim expired"));
    let log = store.attempts(&id).await.unwrap();
    assert_eq!((log.len(), log[0].number, log[0].outcome.as_str()), (1, 1, "expired"));
    assert_eq!(log[0].error.as_deref(), Some("claim expired"));
    assert!(!settle(&store, claimed.lease, Change::Complete).await, "the worker has lost its lease");
});

store_test!(at_the_attempts_limit_it_becomes_a_dead_letter, |store, sql| {
    let id = enqueue_as(&store, NewEvent { max_attempts: 1, ..NewEvent::new("a", "1") }).await;
    claim(&store, "a", 1).await;
    sql.expire_lease(id).await;
    let page = store.reap(&[front("a")], 10).await.unwrap();
    assert_eq!(page.reaped[0].status, Status::DeadLetter);
    let event = event(&store, id).await;
    assert!(event.dead_at.is_some() && event.processed_at.is_some() && event.attempts == 1);
});

store_test!(a_live_lease_and_a_pending_event_are_left_alone, |store, sql| {
    let live = claimed(&store, "a").await.lease;
    let pending = enqueue(&store, "a").await;
    let before = (event(&store, live.event_id.uuid().unwrap()).await, event(&store, pending).await);
    assert_eq!(store.reap(&[front("a")], 10).await.unwrap().reaped, []);
    assert_eq!(store.reap_by_id(&live.event_id).await.unwrap(), None);
    assert_eq!((event(&store, live.event_id.uuid().unwrap()).await, event(&store, pending).await), before);
});

store_test!(a_page_of_live_claims_does_not_hide_an_expired_one, |store, sql| {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(claimed(&store, "a").await.lease.event_id);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    sql.expire_lease(ids[4].uuid().unwrap()).await;
    let mut lane = front("a");
    for pages in 1.. {
        assert!(pages < 5, "the last page was never reached");
        let page = store.reap(&[lane], 2).await.unwrap();
        if let Some(reaped) = page.reaped.first() {
            assert_eq!((reaped.event_id.clone(), page.reaped.len()), (ids[4].clone(), 1));
            break;
        }
        lane = page.unfinished.into_iter().next().expect("a full page of claims goes on");
        assert!(lane.after.is_some());
    }
});

store_test!(a_page_that_ends_in_a_pending_event_is_the_end, |store, sql| {
    claimed(&store, "a").await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    enqueue(&store, "a").await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    enqueue(&store, "a").await;
    assert_eq!(store.reap(&[front("a")], 2).await.unwrap().unfinished, []);
});

store_test!(a_claim_without_an_end_counts_as_expired, |store, sql| {
    let id = claimed(&store, "a").await.lease.event_id;
    sql.sql(&format!("UPDATE {{events}} SET {{lease_until}} = NULL, {{locked_at}} = NULL WHERE {{id}} = '{id}'")).await;
    assert_eq!(store.reap_by_id(&id).await.unwrap().unwrap().status, Status::Pending);
});

store_test!(two_reapers_take_a_lease_back_once, |store, sql| {
    let id = claimed(&store, "a").await.lease.event_id;
    sql.expire_lease(id.uuid().unwrap()).await;
    let other = sql.store().await;
    let lanes = [front("a")];
    let (one, two) = tokio::join!(store.reap(&lanes, 10), other.reap(&lanes, 10));
    assert_eq!(one.unwrap().reaped.len() + two.unwrap().reaped.len(), 1);
    assert_eq!(event(&store, id.uuid().unwrap()).await.attempts, 1);
});
