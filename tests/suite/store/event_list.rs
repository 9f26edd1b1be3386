//! The list of events: every filter, both directions, and pages that stay whole whatever happens between them.

use std::collections::BTreeSet;

use outboxd::event::Status;
use outboxd::outcome::Change;
use outboxd::store::EventQuery;

use super::*;

fn all(limit: u32) -> EventQuery {
    EventQuery { limit, ..EventQuery::default() }
}

/// All pages, as a client reads them.
async fn pages(store: &Arc<dyn Store>, mut query: EventQuery) -> Vec<Uuid> {
    let mut found = Vec::new();
    for _ in 0..100 {
        let page = store.events(&query).await.unwrap();
        assert!(page.events.len() <= query.limit as usize);
        found.extend(page.events.iter().map(|event| event.id.uuid().unwrap()));
        query.after = page.next;
        if query.after.is_none() {
            return found;
        }
    }
    panic!("the list does not end");
}

async fn enqueued(store: &Arc<dyn Store>, count: usize) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(enqueue(store, "a").await);
    }
    ids.sort();
    ids
}

store_test!(events_come_newest_first_or_oldest_first_each_once, |store, sql| {
    let ids = enqueued(&store, 9).await;
    let reversed: Vec<Uuid> = ids.iter().rev().copied().collect();
    for limit in [1, 2, 3, 9, 10, 200] {
        assert_eq!(pages(&store, all(limit)).await, reversed, "{limit}");
        assert_eq!(pages(&store, EventQuery { rising: true, ..all(limit) }).await, ids, "{limit}");
    }
});

store_test!(pages_stay_whole_while_events_come_end_and_go, |store, sql| {
    let ids = enqueued(&store, 12).await;
    let mut query = all(4);
    let first = store.events(&query).await.unwrap();
    assert_eq!(
        first.events.iter().map(|event| event.id.uuid().unwrap()).collect::<Vec<_>>(),
        [ids[11], ids[10], ids[9], ids[8]]
    );
    enqueued(&store, 3).await;
    for id in [ids[11], ids[7], ids[2]] {
        let lease = store.claim_by_id(&id.into(), LEASE).await.unwrap().unwrap().lease;
        assert!(settle(&store, lease, Change::Complete).await);
    }
    sql.sql(&format!("DELETE FROM {{events}} WHERE {{id}} IN ('{}', '{}')", ids[8], ids[5])).await;
    query.after = first.next;
    let rest: Vec<Uuid> = [7, 6, 4, 3, 2, 1, 0].map(|place| ids[place]).to_vec();
    assert_eq!(pages(&store, query).await, rest);
});

store_test!(an_event_that_leaves_the_status_between_pages_hides_no_other, |store, sql| {
    let ids = enqueued(&store, 8).await;
    let query = EventQuery { statuses: vec![Status::Pending], ..all(3) };
    let first = store.events(&query).await.unwrap();
    for place in [5, 4] {
        store.cancel(&ids[place].into(), "x", &somebody()).await.unwrap();
    }
    let rest = pages(&store, EventQuery { after: first.next, ..query }).await;
    assert_eq!(rest, [3, 2, 1, 0].map(|place| ids[place]));
});

store_test!(events_are_filtered_by_status_type_subject_and_creation, |store, sql| {
    let mut ids = Vec::new();
    for (event_type, subject, age) in
        [("a", Some("x"), 400), ("a", None, 300), ("b", Some("x"), 200), ("c", Some("y"), 100)]
    {
        let new = NewEvent { subject: subject.map(str::to_owned), ..NewEvent::new(event_type, "1") };
        let id = enqueue_as(&store, new).await;
        sql.age(id, Duration::from_secs(age)).await;
        ids.push(id);
    }
    let lease = store.claim_by_id(&ids[0].into(), LEASE).await.unwrap().unwrap().lease;
    assert!(settle(&store, lease, Change::Complete).await);
    store.claim_by_id(&ids[1].into(), LEASE).await.unwrap().unwrap();
    let lease = store.claim_by_id(&ids[2].into(), LEASE).await.unwrap().unwrap().lease;
    assert!(settle(&store, lease, bury()).await);
    let at = event(&store, ids[1]).await.created_at;
    let statuses = |statuses: &[Status]| EventQuery { statuses: statuses.to_vec(), ..all(50) };
    let types = |names: &[&str]| EventQuery { types: names.iter().map(|n| (*n).to_owned()).collect(), ..all(50) };
    let subject = |subject: &str| EventQuery { subject: Some(subject.to_owned()), ..all(50) };
    for (query, places) in [
        (all(50), vec![0, 1, 2, 3]),
        (statuses(&[Status::Completed]), vec![0]),
        (statuses(&[Status::Processing]), vec![1]),
        (statuses(&[Status::Pending, Status::Processing]), vec![1, 3]),
        (statuses(&[Status::DeadLetter]), vec![2]),
        (statuses(&[Status::DeadLetter, Status::Completed]), vec![0, 2]),
        (statuses(&[Status::Skipped]), vec![]),
        (types(&["a", "c", "none"]), vec![0, 1, 3]),
        (EventQuery { types: vec!["a".to_owned(), "b".to_owned()], ..statuses(&[Status::DeadLetter]) }, vec![2]),
        (EventQuery { types: vec!["b".to_owned(), "c".to_owned()], ..statuses(&[Status::Pending]) }, vec![3]),
        (subject("x"), vec![0, 2]),
        (EventQuery { types: vec!["b".to_owned()], ..subject("x") }, vec![2]),
        (subject("'"), vec![]),
        (EventQuery { created_after: Some(at), ..all(50) }, vec![2, 3]),
        (EventQuery { created_before: Some(at), ..all(50) }, vec![0]),
        (EventQuery { created_after: Some(at), created_before: Some(at), ..all(50) }, vec![]),
    ] {
        for (rising, limit) in [(false, 50), (true, 50), (false, 1), (true, 1)] {
            let query = EventQuery { rising, limit, ..query.clone() };
            let mut wanted: Vec<Uuid> = places.iter().map(|place| ids[*place]).collect();
            wanted.sort();
            if !rising {
                wanted.reverse();
            }
            assert_eq!(pages(&store, query.clone()).await, wanted, "{query:?}");
        }
    }
});

store_test!(a_rare_filter_among_many_ends_after_some_pages, |store, sql| {
    let event = NewEvent::new("a", "1");
    for _ in 0..26 {
        store.enqueue(&vec![event.clone(); 1_000]).await.unwrap();
    }
    let oldest = "SELECT {id} FROM {events} ORDER BY {id} LIMIT 1";
    sql.sql(&format!("UPDATE {{events}} SET {{event_type}} = 'rare' WHERE {{id}} = ({oldest})")).await;
    for query in [
        EventQuery { types: vec!["rare".to_owned()], ..all(5) },
        EventQuery { types: vec!["rare".to_owned()], statuses: vec![Status::Pending], ..all(5) },
    ] {
        assert_eq!(pages(&store, query).await.len(), 1);
    }
    let query = EventQuery { statuses: vec![Status::Pending], ..all(200) };
    let seen: BTreeSet<Uuid> =
        store.events(&query).await.unwrap().events.iter().map(|e| e.id.uuid().unwrap()).collect();
    assert_eq!(seen.len(), 200, "a backlog that is too large to be looked at is walked along");
});

store_test!(events_show_payloads_on_request_only, |store, sql| {
    enqueue(&store, "a").await;
    for with_payload in [false, true] {
        let page = store.events(&EventQuery { with_payload, ..all(1) }).await.unwrap();
        assert_eq!(page.events[0].payload.is_some(), with_payload);
    }
});

store_test!(ids_at_both_ends_are_listed, |store, sql| {
    for id in [Uuid::nil(), Uuid::max()] {
        enqueue_as(&store, NewEvent { id: Some(id), ..NewEvent::new("a", "1") }).await;
    }
    assert_eq!(pages(&store, all(1)).await, [Uuid::max(), Uuid::nil()]);
    assert_eq!(pages(&store, EventQuery { rising: true, ..all(1) }).await, [Uuid::nil(), Uuid::max()]);
});
