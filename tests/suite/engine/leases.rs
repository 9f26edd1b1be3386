//! Leases: who lost his changes nothing, and what nobody holds any more is taken back.

use std::sync::Mutex;

use futures_util::FutureExt;
use outboxd::lease::Lease;
use outboxd::outcome::{Change, Settlement};

use super::*;
use crate::support::receiver::Reply;

engine_test!(a_settlement_after_the_lease_was_lost_changes_nothing, |world| {
    let receiver = Receiver::start().await;
    receiver.then(Reply::status(500).held());
    let first = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    // With a batch of one it looks for nothing else, not even for its own lease.
    let mut request = within(Duration::from_secs(60));
    request.budget.batch_size = 1;
    let late = tokio::spawn(async move { run_as(&first, request).await });
    receiver.wait_for(1).await;
    world.sql.expire_lease(id).await;

    // Another instance takes it back, and delivers it.
    receiver.then(Reply::status(200).held());
    let second = world.processor(vec![webhook("*", LONG, &receiver)]);
    let taken = tokio::spawn(async move { run(&second).await });
    let requests = receiver.wait_for(2).await;
    assert_eq!(world.standing(id).await, ("processing", 1, 2));

    receiver.release(1);
    let report = late.await.unwrap();
    assert_eq!((report.claimed, report.lease_lost), (1, 1), "{report:?}");
    assert_eq!(world.standing(id).await, ("processing", 1, 2));

    receiver.release(1);
    let report = taken.await.unwrap();
    assert_eq!((report.reaped, report.completed), (1, 1), "{report:?}");
    assert_eq!(world.standing(id).await, ("completed", 1, 2));
    assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    let claims = [requests[0].header("outbox-claim"), requests[1].header("outbox-claim")];
    assert_eq!(claims, [Some("1"), Some("2")]);
});

engine_test!(by_id_a_lost_lease_is_answered_as_such, |world| {
    let receiver = Receiver::start().await;
    receiver.then(Reply::status(200).held());
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    let call = tokio::spawn({
        let processor = processor.clone();
        async move { processor.process_event(&id.into(), PATIENCE).await.unwrap() }
    });
    receiver.wait_for(1).await;
    world.sql.expire_lease(id).await;
    assert_eq!(run(&processor).await.completed, 1);
    receiver.release_all();
    assert_eq!(call.await.unwrap().outcome.as_str(), "lease_lost");
    assert_eq!(world.standing(id).await, ("completed", 1, 2));
});

engine_test!(an_accepted_event_keeps_its_lease_and_is_taken_back_only_after_it, |world| {
    let receiver = Receiver::playing([Reply::status(202).header("Outbox-Outcome", "accepted")]).await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    let report = run(&processor).await;
    assert_eq!((report.claimed, report.accepted, report.more), (1, 1, false), "{report:?}");
    assert_eq!(world.standing(id).await, ("processing", 0, 1));
    assert!(world.event(id).await.lease_until.is_some());
    assert!(run(&processor).await.is_idle());

    world.sql.expire_lease(id).await;
    let report = run(&processor).await;
    assert_eq!((report.reaped, report.completed), (1, 1), "{report:?}");
    assert_eq!(world.standing(id).await, ("completed", 1, 2));
});

engine_test!(a_receiver_that_accepted_may_settle_later_with_its_lease, |world| {
    let receiver = Receiver::playing([Reply::status(202).header("Outbox-Outcome", "accepted")]).await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;
    assert_eq!(run(&processor).await.accepted, 1);
    let settlement = |claim_no| Settlement {
        lease: Lease { event_id: id.into(), claim_no },
        change: Change::Complete,
        attempt: None,
    };
    assert!(world.store.settle(&[settlement(2)]).await.unwrap().is_empty());
    assert_eq!(world.store.settle(&[settlement(1)]).await.unwrap().len(), 1);
    assert_eq!(world.standing(id).await, ("completed", 0, 1));
});

engine_test!(an_expired_lease_behind_events_that_cannot_run_is_taken_back, |world| {
    world.enqueue_many("gone", 20).await;
    let last = world.enqueue("gone").await;
    world.store.claim_by_id(&last.into(), LONG).await.unwrap().unwrap();
    world.sql.expire_lease(last).await;
    let processor = world.processor(vec![route("other", LONG, Do(|_| async { Outcome::Complete }.boxed()))]);
    let report = run(&processor).await;
    assert_eq!((report.claimed, report.reaped), (0, 1), "{report:?}");
    assert_eq!(world.standing(last).await, ("pending", 1, 1));
});

engine_test!(expired_leases_are_taken_back_in_lanes_that_cannot_run_too, |world| {
    let (orphan, last) = (world.enqueue("gone").await, world.enqueue("gone").await);
    for id in [orphan, last] {
        world.store.claim_by_id(&id.into(), LONG).await.unwrap().unwrap();
        world.sql.expire_lease(id).await;
    }
    world.sql.sql(&format!("UPDATE {{events}} SET {{max_attempts}} = 1 WHERE {{id}} = '{last}'")).await;
    let processor = world.processor(vec![route("other", LONG, Do(|_| async { Outcome::Complete }.boxed()))]);
    let report = run(&processor).await;
    assert_eq!((report.claimed, report.reaped), (0, 2), "{report:?}");
    assert_eq!(report.dead_letter_ids, [last]);
    assert_eq!(report.unrouted_types, ["gone"]);
    assert_eq!(world.standing(orphan).await, ("pending", 1, 1));
    assert_eq!(world.event(orphan).await.last_error.as_deref(), Some("claim expired"));
    assert_eq!(world.standing(last).await, ("dead_letter", 1, 1));
});

engine_test!(a_handler_may_settle_by_itself, |world| {
    let store = Arc::clone(&world.store);
    let seen: Arc<Mutex<Vec<Uuid>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let handler = Do(move |event: ClaimedEvent| {
        let store = Arc::clone(&store);
        noted.lock().unwrap().push(event.lease.event_id.uuid().unwrap());
        async move {
            let settlement = Settlement { lease: event.lease.clone(), change: Change::Complete, attempt: None };
            assert_eq!(store.settle(&[settlement]).await.unwrap(), [event.lease]);
            Outcome::Settled
        }
        .boxed()
    });
    let id = world.enqueue("a").await;
    let report = run(&world.processor(vec![route("*", LONG, handler)])).await;
    assert_eq!((report.claimed, report.completed), (1, 1), "{report:?}");
    assert_eq!(world.standing(id).await, ("completed", 0, 1));
    assert_eq!(*seen.lock().unwrap(), [id]);
});
