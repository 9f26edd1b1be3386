//! Dead letters page by page, and what is in flight.

use std::collections::BTreeSet;

use outboxd::store::{DeadLetterQuery, InFlightKey, StoreError};

use super::*;

const NONE: [EventId; 0] = [];

fn page_of(limit: u32) -> DeadLetterQuery {
    DeadLetterQuery { limit, ..DeadLetterQuery::default() }
}

on_every_table!(dead_letters_come_newest_first_and_page_by_page, |ground| {
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(ground.dead_letter().await);
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    ground.enqueue().await;
    ids.reverse();
    let mut listed = Vec::new();
    let mut query = page_of(3);
    for pages in 0.. {
        assert!(pages < 10, "the end was never reached");
        let page = ground.store.dead_letters(&query).await.unwrap();
        listed.extend(page.events.iter().map(|event| event.id.clone()));
        if pages == 0 {
            // What happens between two pages moves nothing.
            ground.dead_letter().await;
            let gone =
                ground.store.requeue(&ids[1], &outboxd::store::RequeueChange::default(), &somebody()).await.unwrap();
            assert!(matches!(gone, outboxd::store::Transition::Applied(_)));
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(listed, ids);
});

on_every_table!(dead_letters_are_found_by_type_subject_and_error, |ground| {
    let id = ground.dead_letter().await;
    let found = async |query: DeadLetterQuery| {
        let page = ground.store.dead_letters(&query).await.unwrap();
        page.events.into_iter().map(|event| event.id).collect::<Vec<_>>()
    };
    assert_eq!(
        found(DeadLetterQuery { types: vec![ground.kind.to_owned()], ..page_of(10) }).await,
        std::slice::from_ref(&id)
    );
    assert_eq!(found(DeadLetterQuery { types: vec!["nothing".to_owned()], ..page_of(10) }).await, NONE);
    assert_eq!(
        found(DeadLetterQuery { error_contains: Some("oo".to_owned()), ..page_of(10) }).await,
        std::slice::from_ref(&id)
    );
    assert_eq!(found(DeadLetterQuery { error_contains: Some("%".to_owned()), ..page_of(10) }).await, NONE);
    assert_eq!(found(DeadLetterQuery { subject: Some("order/1".to_owned()), ..page_of(10) }).await, NONE);
    let with_payload = ground.store.dead_letters(&DeadLetterQuery { with_payload: true, ..page_of(10) }).await.unwrap();
    assert_eq!(with_payload.events[0].payload.as_deref(), Some(r#"{"n": 1}"#));
});

on_every_table!(in_flight_is_what_is_pending_or_processing, |ground| {
    let payload = r#"{"order": 42, "no": null}"#;
    let subject = ground.has_subject.then(|| "order/42".to_owned());
    let new = || NewEvent { subject: subject.clone(), ..NewEvent::new(ground.kind, payload) };
    let (pending, processing, done) =
        (ground.enqueue_as(new()).await, ground.enqueue_as(new()).await, ground.enqueue_as(new()).await);
    ground.enqueue().await;
    ground.claim_by_id(&processing).await.unwrap();
    let claimed = ground.claim_by_id(&done).await.unwrap();
    assert!(ground.settle(&claimed.lease, Change::Complete).await);
    let expected = BTreeSet::from([pending, processing]);
    let ask = async |types: &[String], key: InFlightKey| ground.store.in_flight(types, &key).await;
    let by_key = |value: &str| InFlightKey::Payload { key: "order".to_owned(), value: value.to_owned() };
    assert_eq!(ask(&[], by_key("42")).await.unwrap().into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(ask(&[ground.kind.to_owned()], by_key("42")).await.unwrap().len(), 2);
    assert_eq!(ask(&["nothing".to_owned()], by_key("42")).await.unwrap(), NONE);
    assert_eq!(ask(&[], by_key("4")).await.unwrap(), NONE);
    let by_subject = ask(&[], InFlightKey::Subject("order/42".to_owned())).await;
    if ground.has_subject {
        assert_eq!(by_subject.unwrap().into_iter().collect::<BTreeSet<_>>(), expected);
    } else {
        assert!(matches!(by_subject, Err(StoreError::Unsupported { .. })), "{by_subject:?}");
    }
});
