//! Finding what is due and claiming it.

use std::collections::BTreeSet;

use outboxd::event::Due;
use outboxd::store::{Claim, LaneClaim, SubjectClaim};

use super::*;

on_every_table!(a_lane_is_claimed_in_its_order_and_by_its_limit, |ground| {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(ground.enqueue().await);
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let mut claimed = Vec::new();
    for expected in [2, 2, 1, 0] {
        let mut page: Vec<EventId> = ground.claim(2).await.into_iter().map(|event| event.lease.event_id).collect();
        assert_eq!(page.len(), expected);
        page.sort_by_key(|id| ids.iter().position(|known| known == id));
        claimed.extend(page);
    }
    assert_eq!(claimed, ids);
});

on_every_table!(a_claim_says_what_its_event_is, |ground| {
    let id = ground.enqueue().await;
    let claimed = ground.claim(1).await.remove(0);
    assert_eq!((&claimed.lease.event_id, claimed.event_type.as_str()), (&id, ground.kind));
    assert_eq!(claimed.payload.as_deref(), Some(r#"{"n": 1}"#));
    assert_eq!((claimed.attempts, claimed.max_attempts, claimed.payload_bytes), (0, ground.max_attempts, 8));
    let event = ground.event(&id).await;
    assert_eq!((event.status, event.attempts, event.processed_at), (Status::Processing, 0, None));
    let (locked_at, lease_until) = (event.locked_at.unwrap(), event.lease_until.unwrap());
    assert_eq!(i128::from(lease_until.as_micros() - locked_at.as_micros()), LEASE.as_micros().cast_signed());
});

on_every_table!(four_claimers_share_a_backlog_without_meeting, |ground| {
    let events: Vec<NewEvent> = (0..200).map(|n| NewEvent::new(ground.kind, n.to_string())).collect();
    ground.store.enqueue(&events).await.unwrap();
    let drain = async |store: &std::sync::Arc<dyn outboxd::store::Store>| {
        let mut ids = Vec::new();
        loop {
            let page = store.claim(&ground.claim_of(7)).await.unwrap();
            ids.extend(page.iter().map(|event| event.lease.event_id.clone()));
            // Rows that another has locked are passed over: a short page is no end.
            if page.is_empty() && !store.peek(&ground.claim_of(1)).await.unwrap().claimable {
                break ids;
            }
        }
    };
    let (one, two, three, four) =
        tokio::join!(drain(&ground.store), drain(&ground.other), drain(&ground.store), drain(&ground.other));
    let all = [one, two, three, four].concat();
    assert_eq!(all.len(), 200);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 200, "each by one of them");
});

on_every_table!(what_is_not_due_waits_and_is_seen_coming, |ground| {
    let later = NewEvent { due: Due::AfterMs(60_000), ..NewEvent::new(ground.kind, "1") };
    let id = ground.enqueue_as(later).await;
    assert_eq!(ground.claim(10).await, []);
    assert!(ground.claim_by_id(&id).await.is_none());
    assert!(!ground.store.is_due(&id).await.unwrap());
    let due = ground.event(&id).await.available_at;
    let peek = ground.store.peek(&ground.claim_of(1)).await.unwrap();
    assert_eq!((peek.claimable, peek.next_due_at), (false, Some(due)));
    let fronts = ground.store.survey(None, 10).await.unwrap();
    assert_eq!(fronts.len(), 1);
    assert_eq!((fronts[0].event_type.as_str(), fronts[0].next_due_at), (ground.kind, Some(due)));
    assert!(fronts[0].claimable.is_none() && !fronts[0].claimed_at_front);
    ground.sql.make_due(&id).await;
    assert!(ground.store.is_due(&id).await.unwrap());
    assert!(ground.store.peek(&ground.claim_of(1)).await.unwrap().claimable);
    assert!(ground.store.survey(None, 10).await.unwrap()[0].claimable.is_some());
    assert_eq!(ground.claim(10).await.len(), 1);
});

on_every_table!(an_instant_written_from_now_is_due_at_once, |ground| {
    // As a client with milliseconds writes it: rounded up, so that it may lie ahead of the clock.
    if ground.sql.is_sqlite() || ground.is_own {
        let id = ground.enqueue().await;
        assert!(ground.claim_by_id(&id).await.is_some());
        return;
    }
    for _ in 0..20 {
        let id = ground.enqueue().await;
        let moved =
            "UPDATE {events} SET {available_at} = date_trunc('milliseconds', {now} + interval '999 microseconds')";
        let is_coarse =
            "SELECT count(*) FROM pg_attribute WHERE attrelid = '{events}'::regclass AND attname = 'availableAt'";
        let moved = if ground.sql.count(is_coarse).await == 1 {
            moved.to_owned()
        } else {
            // A column as fine as the clock has nothing to round.
            "UPDATE {events} SET {available_at} = {now}".to_owned()
        };
        ground.sql.sql(&format!("{moved} WHERE {{id}} = '{id}'")).await;
        assert!(ground.claim_by_id(&id).await.is_some());
    }
});

on_every_table!(by_id_only_that_event_is_claimed_and_once, |ground| {
    let (first, second) = (ground.enqueue().await, ground.enqueue().await);
    let claimed = ground.claim_by_id(&second).await.unwrap();
    assert_eq!(claimed.lease.event_id, second);
    assert!(ground.claim_by_id(&second).await.is_none());
    assert_eq!(ground.event(&first).await.status, Status::Pending);
    assert_eq!(ground.claim(10).await.len(), 1);
});

on_every_table!(lanes_are_told_apart_and_named_in_their_order, |ground| {
    ground.enqueue().await;
    let Some(other) = ground.other_kind else {
        let fronts = ground.store.survey(None, 10).await.unwrap();
        assert_eq!(fronts.iter().map(|front| front.event_type.as_str()).collect::<Vec<_>>(), [ground.kind]);
        let stranger = LaneClaim { event_type: "other".to_owned(), limit: 5, from: None, lease: LEASE };
        assert_eq!(ground.store.claim(&Claim { lanes: vec![stranger], subject: None }).await.unwrap(), []);
        return;
    };
    ground.enqueue_as(NewEvent::new(other, "2")).await;
    let named = async |after: Option<&str>, limit: u32| {
        let fronts = ground.store.survey(after, limit).await.unwrap();
        fronts.into_iter().map(|front| front.event_type).collect::<Vec<_>>()
    };
    assert_eq!(named(None, 10).await, [ground.kind, other]);
    assert_eq!(named(None, 1).await, [ground.kind]);
    assert_eq!(named(Some(ground.kind), 10).await, [other]);
    assert_eq!(ground.claim(10).await.len(), 1, "the other lane's event is no business of this one");
    let lanes =
        [ground.kind, other].map(|kind| LaneClaim { event_type: kind.to_owned(), limit: 5, from: None, lease: LEASE });
    assert_eq!(ground.store.claim(&Claim { lanes: lanes.to_vec(), subject: None }).await.unwrap().len(), 1);
});

on_every_table!(many_lanes_are_claimed_each_by_its_limit, |ground| {
    if ground.other_kind.is_none() {
        return;
    }
    let kinds: Vec<String> = (0..20).map(|n| format!("kind{n:02}")).collect();
    let events: Vec<NewEvent> =
        kinds.iter().flat_map(|kind| [1, 2, 3].map(|n| NewEvent::new(kind, n.to_string()))).collect();
    ground.store.enqueue(&events).await.unwrap();
    let lanes =
        kinds.iter().map(|kind| LaneClaim { event_type: kind.clone(), limit: 2, from: None, lease: LEASE }).collect();
    let claimed = ground.store.claim(&Claim { lanes, subject: None }).await.unwrap();
    assert_eq!(claimed.len(), 40);
    for kind in &kinds {
        assert_eq!(claimed.iter().filter(|event| event.event_type == *kind).count(), 2, "{kind}");
    }
});

on_every_table!(a_claim_may_be_confined_to_a_subject, |ground| {
    if !ground.has_subject {
        return;
    }
    for n in 0..6 {
        let subject = Some(format!("order/{}", n % 2));
        ground.enqueue_as(NewEvent { subject, ..NewEvent::new(ground.kind, n.to_string()) }).await;
    }
    let confined = SubjectClaim { subject: "order/1".to_owned(), limit: 2 };
    let claim = Claim { subject: Some(confined), ..ground.claim_of(10) };
    assert!(ground.store.peek(&claim).await.unwrap().claimable);
    for expected in [2, 1, 0] {
        let page = ground.store.claim(&claim).await.unwrap();
        assert_eq!(page.len(), expected);
        assert!(page.iter().all(|event| event.subject.as_deref() == Some("order/1")));
    }
    assert!(!ground.store.peek(&claim).await.unwrap().claimable);
    assert_eq!(ground.claim(10).await.len(), 3);
});
