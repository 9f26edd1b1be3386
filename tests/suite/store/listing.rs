//! In-flight queries and the list of dead letters.

use outboxd::outcome::Change;
use outboxd::store::{DeadLetterQuery, InFlightKey, RequeueChange};

use super::*;

fn by_payload(key: &str, value: &str) -> InFlightKey {
    InFlightKey::Payload { key: key.to_owned(), value: value.to_owned() }
}

store_test!(in_flight_finds_pending_and_processing_by_subject, |store, sql| {
    let of = |subject: &str| NewEvent { subject: Some(subject.to_owned()), ..NewEvent::new("a", "1") };
    let pending = enqueue_as(&store, of("x")).await;
    let processing = enqueue_as(&store, of("x")).await;
    store.claim_by_id(&processing.into(), LEASE).await.unwrap().unwrap();
    let done = enqueue_as(&store, of("x")).await;
    let lease = store.claim_by_id(&done.into(), LEASE).await.unwrap().unwrap().lease;
    assert!(settle(&store, lease, Change::Complete).await);
    enqueue_as(&store, of("y")).await;

    let key = InFlightKey::Subject("x".to_owned());
    let mut found = store.in_flight(&[], &key).await.unwrap();
    found.sort();
    let mut expected = vec![pending, processing];
    expected.sort();
    assert_eq!(found, expected);
    assert!(store.in_flight(&["b".to_owned()], &key).await.unwrap().is_empty());
    assert_eq!(store.in_flight(&["b".to_owned(), "a".to_owned()], &key).await.unwrap().len(), 2);
});

store_test!(in_flight_compares_payload_values_as_text, |store, sql| {
    for payload in [
        r#"{"order": 42}"#,
        r#"{"order": "42"}"#,
        r#"{"order": true}"#,
        r#"{"order": null}"#,
        r#"{"order": 1.50}"#,
        r#"{"order": 12345678901234567890}"#,
        r#"{"order": "a\"\u00e9"}"#,
        r#"{"order": 1, "order": 2}"#,
        r#"{"other": 42}"#,
        "[42]",
        "42",
    ] {
        enqueue_as(&store, NewEvent::new("a", payload)).await;
    }
    for (value, matches) in [
        ("42", 2),
        ("true", 1),
        ("1", 0),
        ("null", 0),
        ("", 0),
        ("1.50", 1),
        ("1.5", 0),
        ("12345678901234567890", 1),
        ("a\"é", 1),
        ("2", 1),
    ] {
        let found = store.in_flight(&["a".to_owned()], &by_payload("order", value)).await.unwrap();
        assert_eq!(found.len(), matches, "{value}");
        assert_eq!(store.in_flight(&[], &by_payload("order", value)).await.unwrap().len(), matches, "{value}");
    }
});

store_test!(a_payload_that_is_no_text_fails_no_query, |store, sql| {
    sql.sql(r#"INSERT INTO {events} ({event_type}, {payload}) VALUES ('a', '{"k": "\u0000"}'), ('a', '{"k": "v"}')"#)
        .await;
    assert_eq!(store.in_flight(&["a".to_owned()], &by_payload("k", "v")).await.unwrap().len(), 1);
});

store_test!(in_flight_names_ten_at_most, |store, sql| {
    let event = NewEvent { subject: Some("x".to_owned()), ..NewEvent::new("a", r#"{"k":"v"}"#) };
    store.enqueue(&vec![event; 15]).await.unwrap();
    assert_eq!(store.in_flight(&[], &InFlightKey::Subject("x".to_owned())).await.unwrap().len(), 10);
    assert_eq!(store.in_flight(&["a".to_owned()], &by_payload("k", "v")).await.unwrap().len(), 10);
});

/// All pages, as a client reads them.
async fn pages(store: &Arc<dyn Store>, mut query: DeadLetterQuery) -> Vec<Uuid> {
    let mut found = Vec::new();
    for _ in 0..50 {
        let page = store.dead_letters(&query).await.unwrap();
        assert!(page.events.len() <= query.limit as usize);
        found.extend(page.events.iter().map(|event| event.id.uuid().unwrap()));
        query.after = page.next;
        if query.after.is_none() {
            return found;
        }
    }
    panic!("the list does not end");
}

store_test!(dead_letters_come_newest_first_page_by_page, |store, sql| {
    let mut ids = Vec::new();
    for number in 0..7_u64 {
        let id = dead_letter(&store, "a").await;
        let at = sql.ago(Duration::from_secs(100 - number));
        sql.sql(&format!("UPDATE {{events}} SET {{dead_at}} = {at} WHERE {{id}} = '{id}'")).await;
        ids.push(id);
    }
    enqueue(&store, "a").await;
    ids.reverse();
    for limit in [1, 3, 7, 200] {
        assert_eq!(pages(&store, DeadLetterQuery { limit, ..DeadLetterQuery::default() }).await, ids);
    }
});

store_test!(pages_stay_whole_while_dead_letters_come_and_go, |store, sql| {
    let mut ids = Vec::new();
    for number in 0..6_u64 {
        let id = dead_letter(&store, "a").await;
        let at = sql.ago(Duration::from_secs(100 - number));
        sql.sql(&format!("UPDATE {{events}} SET {{dead_at}} = {at} WHERE {{id}} = '{id}'")).await;
        ids.insert(0, id);
    }
    let mut query = DeadLetterQuery { limit: 2, ..DeadLetterQuery::default() };
    let first = store.dead_letters(&query).await.unwrap();
    store.requeue(&ids[1].into(), &RequeueChange::default(), &somebody()).await.unwrap();
    dead_letter(&store, "a").await;
    query.after = first.next;
    assert_eq!(pages(&store, query).await, ids[2..]);
});

store_test!(dead_letters_of_one_instant_are_each_listed_once, |store, sql| {
    let mut ids = Vec::new();
    for _ in 0..9 {
        ids.push(dead_letter(&store, "a").await);
    }
    sql.sql("UPDATE {events} SET {dead_at} = {now}").await;
    let mut found = pages(&store, DeadLetterQuery { limit: 2, ..DeadLetterQuery::default() }).await;
    ids.sort();
    found.sort();
    assert_eq!(found, ids);
});

store_test!(dead_letters_are_filtered_by_type_subject_and_error, |store, sql| {
    let mut expected = Vec::new();
    for (event_type, subject, error) in [
        ("a", Some("x"), "100% Timeout"),
        ("a", Some("y"), "timeout"),
        ("b", None, "a_b"),
        ("c", Some("x"), "100x Timeout"),
    ] {
        let new = NewEvent { subject: subject.map(str::to_owned), ..NewEvent::new(event_type, "1") };
        let id = enqueue_as(&store, new).await;
        let lease = store.claim_by_id(&id.into(), LEASE).await.unwrap().unwrap().lease;
        let change = Change::DeadLetter { spends_attempt: true, error: error.to_owned() };
        assert!(settle(&store, lease, change).await);
        expected.push(id);
    }
    let base = DeadLetterQuery { limit: 50, ..DeadLetterQuery::default() };
    let types =
        |names: &[&str]| DeadLetterQuery { types: names.iter().map(|n| (*n).to_owned()).collect(), ..base.clone() };
    let error = |text: &str| DeadLetterQuery { error_contains: Some(text.to_owned()), ..base.clone() };
    let subject = DeadLetterQuery { subject: Some("x".to_owned()), ..base.clone() };
    for (query, places) in [
        (types(&["a"]), vec![0, 1]),
        (types(&["a", "c", "none"]), vec![0, 1, 3]),
        (subject, vec![0, 3]),
        (error("Timeout"), vec![0, 3]),
        (error("0%"), vec![0]),
        (error("a_b"), vec![2]),
        (error("'"), vec![]),
        (DeadLetterQuery { subject: Some("x".to_owned()), ..types(&["c"]) }, vec![3]),
    ] {
        let mut found = pages(&store, query.clone()).await;
        found.sort();
        let mut wanted: Vec<Uuid> = places.iter().map(|place| expected[*place]).collect();
        wanted.sort();
        assert_eq!(found, wanted, "{query:?}");
    }
});

store_test!(dead_letters_show_payloads_on_request_only, |store, sql| {
    dead_letter(&store, "a").await;
    for with_payload in [false, true] {
        let query = DeadLetterQuery { limit: 1, with_payload, ..DeadLetterQuery::default() };
        let page = store.dead_letters(&query).await.unwrap();
        assert_eq!(page.events[0].payload.is_some(), with_payload);
    }
});
