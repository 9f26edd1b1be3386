//! Expired leases are taken back: all of them, and nothing but them.

use outboxd::store::ReapLane;

use super::*;

fn lane(ground: &Ground) -> [ReapLane; 1] {
    [ReapLane { event_type: ground.kind.to_owned(), after: None }]
}

on_every_table!(an_expired_lease_goes_back_to_pending, |ground| {
    let claimed = ground.claimed().await;
    let id = claimed.lease.event_id.clone();
    ground.expire(&id).await;
    let fronts = ground.store.survey(None, 10).await.unwrap();
    assert!(fronts[0].claimed_at_front, "a sweep sees where leases have expired: {fronts:?}");
    let page = ground.store.reap(&lane(&ground), 10).await.unwrap();
    assert_eq!((page.unfinished.len(), page.reaped.len()), (0, 1));
    let reaped = &page.reaped[0];
    assert_eq!((&reaped.event_id, reaped.status, reaped.event_type.as_str()), (&id, Status::Pending, ground.kind));
    let event = ground.event(&id).await;
    assert_eq!((event.status, event.attempts), (Status::Pending, 1));
    assert_eq!((event.locked_at, event.lease_until), (None, None));
    assert_eq!(event.last_error.as_deref(), Some("claim expired"));
    assert!(!ground.settle(&claimed.lease, Change::Complete).await, "the worker has lost its lease");
    assert!(ground.claim_by_id(&id).await.is_some(), "due at once");
});

on_every_table!(at_the_attempts_limit_it_becomes_a_dead_letter, |ground| {
    let ids = [ground.claimed().await.lease.event_id, ground.claimed().await.lease.event_id];
    for id in &ids {
        let spent = ground.max_attempts - 1;
        ground.sql.sql(&format!("UPDATE {{events}} SET {{attempts}} = {spent} WHERE {{id}} = '{id}'")).await;
        ground.expire(id).await;
    }
    assert_eq!(ground.store.reap_by_id(&ids[0]).await.unwrap().unwrap().status, Status::DeadLetter);
    let page = ground.store.reap(&lane(&ground), 10).await.unwrap();
    assert_eq!((page.reaped.len(), page.reaped[0].status), (1, Status::DeadLetter));
    for id in &ids {
        let event = ground.event(id).await;
        assert_eq!((event.status, event.attempts), (Status::DeadLetter, ground.max_attempts));
        assert!(event.dead_at.is_some() && event.processed_at.is_some() && event.locked_at.is_none());
        assert_eq!(event.last_error.as_deref(), Some("claim expired"));
    }
});

on_every_table!(a_live_lease_and_a_pending_event_are_left_alone, |ground| {
    let live = ground.claimed().await.lease;
    let pending = ground.enqueue().await;
    let before = (ground.event(&live.event_id).await, ground.event(&pending).await);
    assert_eq!(ground.store.reap(&lane(&ground), 10).await.unwrap().reaped, []);
    assert_eq!(ground.store.reap_by_id(&live.event_id).await.unwrap(), None);
    assert_eq!(ground.store.reap_by_id(&pending).await.unwrap(), None);
    assert_eq!((ground.event(&live.event_id).await, ground.event(&pending).await), before);
    assert!(ground.settle(&live, Change::Complete).await);
});

on_every_table!(pages_go_on_until_all_are_taken_back, |ground| {
    for n in 0..7 {
        let id = ground.claimed().await.lease.event_id;
        if n % 2 == 0 {
            ground.expire(&id).await;
        }
    }
    let mut lanes = lane(&ground).to_vec();
    let mut reaped = 0;
    for pages in 0.. {
        assert!(pages < 10, "the end was never reached");
        let page = ground.store.reap(&lanes, 2).await.unwrap();
        reaped += page.reaped.len();
        lanes = page.unfinished;
        if lanes.is_empty() {
            break;
        }
    }
    assert_eq!(reaped, 4);
});

on_every_table!(a_claim_without_an_instant_counts_as_expired, |ground| {
    let id = ground.claimed().await.lease.event_id;
    let also = if ground.is_own { ", {lease_until} = NULL" } else { "" };
    ground.sql.sql(&format!("UPDATE {{events}} SET {{locked_at}} = NULL{also} WHERE {{id}} = '{id}'")).await;
    assert_eq!(ground.store.reap_by_id(&id).await.unwrap().unwrap().status, Status::Pending);
});

on_every_table!(two_reapers_take_a_lease_back_once, |ground| {
    let id = ground.claimed().await.lease.event_id;
    ground.expire(&id).await;
    let lanes = lane(&ground);
    let (one, two) = tokio::join!(ground.store.reap(&lanes, 10), ground.other.reap(&lanes, 10));
    assert_eq!(one.unwrap().reaped.len() + two.unwrap().reaped.len(), 1);
    assert_eq!(ground.event(&id).await.attempts, 1);
});
