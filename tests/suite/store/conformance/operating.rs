//! What operators do: cancel, requeue, discard, purge, each from its one status.

use std::time::Duration;

use outboxd::event::Event;
use outboxd::store::{RequeueChange, Transition};

use super::*;

fn applied(transition: Transition) -> Event {
    match transition {
        Transition::Applied(event) => *event,
        other @ (Transition::Refused(_) | Transition::Absent) => panic!("{other:?}"),
    }
}

fn refused(transition: Transition) -> Status {
    match transition {
        Transition::Refused(event) => event.status,
        other @ (Transition::Applied(_) | Transition::Absent) => panic!("{other:?}"),
    }
}

on_every_table!(cancel_skips_what_is_pending, |ground| {
    let id = ground.enqueue().await;
    let answer = ground.store.cancel(&id, "changed my mind", &somebody()).await.unwrap();
    if !ground.has_skipped {
        assert_eq!(refused(answer), Status::Pending, "the table has no word for it");
        return;
    }
    let event = applied(answer);
    assert_eq!((event.status, event.attempts), (Status::Skipped, 0));
    assert_eq!(event.last_error.as_deref(), Some("changed my mind"));
    assert!(event.processed_at.is_some() && event.dead_at.is_none());
    assert_eq!(refused(ground.store.cancel(&id, "again", &somebody()).await.unwrap()), Status::Skipped);
    assert_eq!(ground.claim(10).await, []);
});

on_every_table!(requeue_starts_a_dead_letter_afresh, |ground| {
    let id = ground.dead_letter().await;
    let change = RequeueChange { delay: Duration::from_secs(20), max_attempts: None };
    let event = applied(ground.store.requeue(&id, &change, &somebody()).await.unwrap());
    assert_eq!((event.status, event.attempts, event.requeues), (Status::Pending, 0, i32::from(ground.is_own)));
    assert_eq!((event.processed_at, event.dead_at, event.locked_at), (None, None, None));
    assert_eq!(ground.claim(1).await, [], "not due yet");
    ground.sql.make_due(&id).await;
    assert_eq!(ground.claim(1).await.len(), 1);
});

on_every_table!(discard_skips_a_dead_letter, |ground| {
    let id = ground.dead_letter().await;
    let answer = ground.store.discard(&id, "useless", &somebody()).await.unwrap();
    if !ground.has_skipped {
        assert_eq!(refused(answer), Status::DeadLetter, "the table has no word for it");
        return;
    }
    let event = applied(answer);
    assert_eq!((event.status, event.dead_at, event.last_error.as_deref()), (Status::Skipped, None, Some("useless")));
    assert!(event.processed_at.is_some());
});

on_every_table!(every_other_status_refuses_and_stays_as_it_is, |ground| {
    let completed = ground.claimed().await.lease;
    assert!(ground.settle(&completed, Change::Complete).await);
    let all = [
        (Status::Completed, completed.event_id),
        (Status::DeadLetter, ground.dead_letter().await),
        (Status::Processing, ground.claimed().await.lease.event_id),
        (Status::Pending, ground.enqueue().await),
    ];
    for (status, id) in all {
        let before = ground.event(&id).await;
        assert_eq!(before.status, status);
        if status != Status::Pending {
            assert_eq!(refused(ground.store.cancel(&id, "x", &somebody()).await.unwrap()), status);
            assert!(ground.claim_by_id(&id).await.is_none());
            assert!(!ground.store.is_due(&id).await.unwrap());
        }
        if status != Status::DeadLetter {
            assert_eq!(
                refused(ground.store.requeue(&id, &RequeueChange::default(), &somebody()).await.unwrap()),
                status
            );
            assert_eq!(refused(ground.store.discard(&id, "x", &somebody()).await.unwrap()), status);
        }
        assert!(ground.store.reap_by_id(&id).await.unwrap().is_none(), "{status} has no expired lease");
        assert_eq!(ground.event(&id).await, before);
    }
});

on_every_table!(what_is_not_there_is_absent, |ground| {
    let strange = ["0198c0de-0000-7000-8000-000000000000", "7", "'; --", "{1,2}", "a b", "🦀"];
    for id in strange.into_iter().filter_map(|text| ground.store.parse_id(text)) {
        assert_eq!(ground.store.cancel(&id, "x", &somebody()).await.unwrap(), Transition::Absent);
        assert_eq!(
            ground.store.requeue(&id, &RequeueChange::default(), &somebody()).await.unwrap(),
            Transition::Absent
        );
        assert_eq!(ground.store.discard(&id, "x", &somebody()).await.unwrap(), Transition::Absent);
        assert_eq!(ground.store.event(&id, true).await.unwrap(), None);
        assert_eq!(ground.store.attempts(&id).await.unwrap(), []);
        assert!(ground.claim_by_id(&id).await.is_none());
        assert!(!ground.store.is_due(&id).await.unwrap());
        assert!(ground.store.reap_by_id(&id).await.unwrap().is_none());
    }
});

on_every_table!(purge_deletes_what_is_done_and_old_and_nothing_else, |ground| {
    let day = Duration::from_hours(24);
    let mut done = Vec::new();
    for _ in 0..4 {
        let lease = ground.claimed().await.lease;
        assert!(ground.settle(&lease, Change::Complete).await);
        done.push(lease.event_id);
    }
    let kept = [ground.dead_letter().await, ground.claimed().await.lease.event_id, ground.enqueue().await];
    for id in done[..3].iter().chain(&kept) {
        ground.sql.age(id, day * 8).await;
    }
    assert_eq!(ground.store.purge(day * 9, day * 9, 100).await.unwrap(), 0);
    assert_eq!(ground.store.purge(day * 7, day * 7, 2).await.unwrap(), 2);
    assert_eq!(ground.store.purge(day * 7, day * 7, 100).await.unwrap(), 1);
    assert_eq!(ground.store.purge(day * 7, day * 7, 100).await.unwrap(), 0);
    assert_eq!(ground.sql.count("SELECT count(*) FROM {events}").await, 4);
    assert_eq!(ground.event(&done[3]).await.status, Status::Completed);
});

on_every_table!(what_has_no_instant_of_its_end_is_never_purged, |ground| {
    if ground.is_own {
        return;
    }
    let lease = ground.claimed().await.lease;
    assert!(ground.settle(&lease, Change::Complete).await);
    let id = &lease.event_id;
    ground.sql.age(id, Duration::from_hours(24) * 90).await;
    ground.sql.sql(&format!("UPDATE {{events}} SET {{processed_at}} = NULL WHERE {{id}} = '{id}'")).await;
    ground.sql.make_due(id).await;
    assert_eq!(ground.store.purge(Duration::from_secs(1), Duration::from_secs(1), 100).await.unwrap(), 0);
    assert_eq!(ground.event(id).await.status, Status::Completed);
});
