//! Counts at the largest number that the schema lets in: a plain INSERT can bring such a row in. Its counts stay where they
//! are, and an event whose claim numbers are used up is passed over.

use outboxd::event::Status;
use outboxd::outcome::Change;
use outboxd::store::{ReapLane, RequeueChange, SubjectClaim, Transition};

use super::*;
use crate::support::database::TestDb;

const LAST_CLAIM_NO: i64 = 1_000_000_000_000_000;
const MOST_ATTEMPTS: i32 = 1_000_000;
const MOST_REQUEUES: i32 = 1_000_000_000;

async fn set(sql: &TestDb, id: Uuid, column: &str, value: i64) {
    let template = format!("UPDATE {{events}} SET {{{column}}} = {value} WHERE {{id}} = '{id}'");
    assert_eq!(sql.sql(&template).await, 1);
}

/// An event of this subject whose claim numbers are used up.
async fn used_up(store: &Arc<dyn Store>, sql: &TestDb, event_type: &str) -> Uuid {
    let subject = Some("s".to_owned());
    let id = enqueue_as(store, NewEvent { subject, ..NewEvent::new(event_type, "1") }).await;
    sql.make_due(id).await;
    set(sql, id, "claim_no", LAST_CLAIM_NO).await;
    id
}

store_test!(an_event_without_a_claim_number_left_is_passed_over, |store, sql| {
    let stuck = used_up(&store, &sql, "a").await;
    let of_subject = Claim { subject: Some(SubjectClaim { subject: "s".to_owned(), limit: 5 }), ..one_lane("a", 5) };
    for claim in [&one_lane("a", 5), &of_subject] {
        assert!(!store.peek(claim).await.unwrap().claimable);
        assert_eq!(store.claim(claim).await.unwrap(), []);
    }
    assert_eq!(store.claim_by_id(&stuck.into(), LEASE).await.unwrap(), None);
    assert_eq!(store.survey(None, 1).await.unwrap()[0].claimable, None);

    let neighbour = enqueue(&store, "a").await;
    let front = &store.survey(None, 1).await.unwrap()[0];
    assert_eq!(front.claimable.as_ref().map(|position| position.id.clone()), Some(neighbour.into()));
    assert!(store.peek(&one_lane("a", 5)).await.unwrap().claimable);
    let claimed = claim(&store, "a", 5).await;
    assert_eq!(claimed.iter().map(|event| event.lease.event_id.clone()).collect::<Vec<_>>(), [neighbour]);
    assert!(matches!(
        store.cancel(&stuck.into(), "cannot be claimed", &somebody()).await.unwrap(),
        Transition::Applied(_)
    ));
});

store_test!(expired_leases_behind_an_event_that_cannot_be_claimed_are_looked_for, |store, sql| {
    used_up(&store, &sql, "a").await;
    let behind = claimed(&store, "a").await;
    sql.expire_lease(behind.lease.event_id.uuid().unwrap()).await;
    assert!(store.survey(None, 1).await.unwrap()[0].claimed_at_front);
    let page = store.reap(&[ReapLane { event_type: "a".to_owned(), after: None }], 10).await.unwrap();
    assert_eq!(page.reaped[0].event_id, behind.lease.event_id);
});

store_test!(the_last_claim_number_is_claimed_with, |store, sql| {
    let id = enqueue(&store, "a").await;
    set(&sql, id, "claim_no", LAST_CLAIM_NO - 1).await;
    let claimed = claim(&store, "a", 1).await;
    assert_eq!(claimed[0].lease.claim_no, LAST_CLAIM_NO);
    assert!(settle(&store, claimed[0].lease.clone(), retry(0)).await);
    assert_eq!(claim(&store, "a", 1).await, []);
});

store_test!(attempts_stay_at_their_limit_and_neighbours_are_settled_and_taken_back, |store, sql| {
    let (full, neighbour) = (claimed(&store, "a").await.lease, claimed(&store, "a").await.lease);
    set(&sql, full.event_id.uuid().unwrap(), "attempts", i64::from(MOST_ATTEMPTS)).await;
    let both = [settlement(full.clone(), bury()), settlement(neighbour, Change::Complete)];
    assert_eq!(store.settle(&both).await.unwrap().len(), 2);
    let event_after = event(&store, full.event_id.uuid().unwrap()).await;
    assert_eq!((event_after.status, event_after.attempts), (Status::DeadLetter, MOST_ATTEMPTS));

    let (full, neighbour) = (claimed(&store, "b").await.lease, claimed(&store, "b").await.lease);
    set(&sql, full.event_id.uuid().unwrap(), "attempts", i64::from(MOST_ATTEMPTS)).await;
    for lease in [full.clone(), neighbour] {
        sql.expire_lease(lease.event_id.uuid().unwrap()).await;
    }
    let page = store.reap(&[ReapLane { event_type: "b".to_owned(), after: None }], 10).await.unwrap();
    assert_eq!(page.reaped.len(), 2);
    let event_after = event(&store, full.event_id.uuid().unwrap()).await;
    assert_eq!((event_after.status, event_after.attempts), (Status::DeadLetter, MOST_ATTEMPTS));
});

store_test!(requeues_stay_at_their_limit, |store, sql| {
    let id = dead_letter(&store, "a").await;
    set(&sql, id, "requeues", i64::from(MOST_REQUEUES)).await;
    let change = RequeueChange { delay: Duration::ZERO, max_attempts: None };
    let Transition::Applied(event) = store.requeue(&id.into(), &change, &somebody()).await.unwrap() else {
        panic!("refused")
    };
    assert_eq!((event.status, event.requeues), (Status::Pending, MOST_REQUEUES));
});
