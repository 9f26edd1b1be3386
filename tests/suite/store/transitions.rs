//! What operators do: cancel, requeue, discard, each from its one status.

use outboxd::event::Status;
use outboxd::outcome::Change;
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

/// An event in each status.
async fn one_of_each(store: &Arc<dyn Store>) -> Vec<(Status, Uuid)> {
    let pending = enqueue(store, "a").await;
    let processing = claimed(store, "a").await.lease.event_id;
    let completed = claimed(store, "a").await.lease;
    assert!(settle(store, completed.clone(), Change::Complete).await);
    let skipped = claimed(store, "a").await.lease;
    assert!(settle(store, skipped.clone(), Change::Skip { reason: "no".to_owned() }).await);
    vec![
        (Status::Pending, pending),
        (Status::Processing, processing.uuid().unwrap()),
        (Status::Completed, completed.event_id.uuid().unwrap()),
        (Status::DeadLetter, dead_letter(store, "a").await),
        (Status::Skipped, skipped.event_id.uuid().unwrap()),
    ]
}

store_test!(cancel_skips_what_is_pending, |store, sql| {
    let id = enqueue(&store, "a").await;
    let event = applied(store.cancel(&id.into(), "changed my mind", &somebody()).await.unwrap());
    assert_eq!((event.status, event.attempts, event.payload), (Status::Skipped, 0, None));
    assert_eq!(event.last_error.as_deref(), Some("changed my mind"));
    assert!(event.processed_at.is_some() && event.dead_at.is_none());
    assert_eq!(refused(store.cancel(&id.into(), "again", &somebody()).await.unwrap()), Status::Skipped);
    assert_eq!(claim(&store, "a", 10).await, []);
});

store_test!(requeue_starts_a_dead_letter_afresh, |store, sql| {
    let id = dead_letter(&store, "a").await;
    let change = RequeueChange { delay: Duration::from_secs(20), max_attempts: Some(3) };
    let event = applied(store.requeue(&id.into(), &change, &somebody()).await.unwrap());
    assert_eq!((event.status, event.attempts, event.max_attempts, event.requeues), (Status::Pending, 0, 3, 1));
    assert_eq!((event.processed_at, event.dead_at, event.deferred_since), (None, None, None));
    assert_eq!((event.last_error.as_deref(), event.claim_no), (Some("boom"), 1));
    assert_eq!(claim(&store, "a", 1).await, [], "not due yet");
    sql.make_due(id).await;
    assert_eq!(claim(&store, "a", 1).await[0].lease.claim_no, 2, "old leases stay dead");
});

store_test!(discard_skips_a_dead_letter, |store, sql| {
    let id = dead_letter(&store, "a").await;
    let event = applied(store.discard(&id.into(), "", &somebody()).await.unwrap());
    assert_eq!((event.status, event.dead_at, event.last_error.as_deref()), (Status::Skipped, None, Some("boom")));
    assert!(event.processed_at.is_some());
    let other = dead_letter(&store, "a").await;
    assert_eq!(
        applied(store.discard(&other.into(), "useless", &somebody()).await.unwrap()).last_error.as_deref(),
        Some("useless")
    );
});

store_test!(every_other_status_refuses_and_stays_as_it_is, |store, sql| {
    for (status, id) in one_of_each(&store).await {
        let before = event(&store, id).await;
        assert_eq!(before.status, status);
        if status != Status::Pending {
            assert_eq!(refused(store.cancel(&id.into(), "x", &somebody()).await.unwrap()), status);
            assert!(store.claim_by_id(&id.into(), LEASE).await.unwrap().is_none());
        }
        if status != Status::DeadLetter {
            assert_eq!(
                refused(store.requeue(&id.into(), &RequeueChange::default(), &somebody()).await.unwrap()),
                status
            );
            assert_eq!(refused(store.discard(&id.into(), "x", &somebody()).await.unwrap()), status);
        }
        assert!(store.reap_by_id(&id.into()).await.unwrap().is_none(), "{status} has no expired lease");
        assert_eq!(event(&store, id).await, before);
    }
});

store_test!(what_is_not_there_is_absent, |store, sql| {
    let id = Uuid::now_v7();
    assert_eq!(store.cancel(&id.into(), "x", &somebody()).await.unwrap(), Transition::Absent);
    assert_eq!(store.requeue(&id.into(), &RequeueChange::default(), &somebody()).await.unwrap(), Transition::Absent);
    assert_eq!(store.discard(&id.into(), "x", &somebody()).await.unwrap(), Transition::Absent);
    assert_eq!(store.event(&id.into(), true).await.unwrap(), None);
    assert_eq!(store.attempts(&id.into()).await.unwrap(), []);
    assert!(store.claim_by_id(&id.into(), LEASE).await.unwrap().is_none());
    assert!(store.reap_by_id(&id.into()).await.unwrap().is_none());
});
