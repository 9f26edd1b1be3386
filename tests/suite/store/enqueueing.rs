//! Enqueueing by the service and by a plain INSERT: what is written, what is a replay, what is refused.

use std::collections::HashSet;

use outboxd::event::{Due, Status};
use outboxd::store::EnqueueError;
use outboxd::timestamp::Timestamp;

use super::*;
use crate::support::database::TestDb;

pub(super) fn keyed(key: &str, payload: &str) -> NewEvent {
    NewEvent { idempotency_key: Some(key.to_owned()), ..NewEvent::new("a", payload) }
}

pub(super) fn with_id(id: Uuid, payload: &str) -> NewEvent {
    NewEvent { id: Some(id), ..NewEvent::new("a", payload) }
}

pub(super) async fn rows(sql: &TestDb) -> i64 {
    sql.count("SELECT count(*) FROM {events}").await
}

store_test!(a_new_event_is_pending_and_due, |store, sql| {
    let answers = store.enqueue(&[NewEvent::new("a", "{}")]).await.unwrap();
    assert!(answers[0].created);
    let answer = &answers[0].event;
    assert_eq!((answer.status, answer.attempts, answer.claim_no, answer.requeues), (Status::Pending, 0, 0, 0));
    assert_eq!((answer.available_at, answer.payload.as_deref()), (answer.created_at, None));
    assert_eq!((answer.id.uuid().unwrap().get_version_num(), answer.max_attempts), (7, 10));
    assert_eq!(event(&store, answer.id.uuid().unwrap()).await, *answer);
});

store_test!(due_times_are_taken_as_given, |store, sql| {
    let at = Timestamp::from_micros(1_234_567_890_123_456);
    let answers = store
        .enqueue(&[
            NewEvent { due: Due::At(at), ..NewEvent::new("a", "1") },
            NewEvent { due: Due::AfterMs(5_000), ..NewEvent::new("a", "1") },
        ])
        .await
        .unwrap();
    assert_eq!(answers[0].event.available_at, at);
    assert_eq!(between(answers[1].event.created_at, answers[1].event.available_at), 5_000_000);
});

store_test!(payloads_are_kept_byte_for_byte, |store, sql| {
    for payload in
        [r#" {"b":1, "a" : 2,"b":3} "#, "12345678901234567890.10", r#""\u00e9\/é🦀""#, "null", "1e130000", "\"it's\""]
    {
        let id = enqueue_as(&store, NewEvent::new("a", payload)).await;
        assert_eq!(store.event(&id.into(), true).await.unwrap().unwrap().payload.as_deref(), Some(payload));
        assert_eq!(store.claim_by_id(&id.into(), LEASE).await.unwrap().unwrap().payload.as_deref(), Some(payload));
    }
});

store_test!(a_key_replays_its_request_and_refuses_another, |store, sql| {
    let first = store.enqueue(&[keyed("k", "1")]).await.unwrap().remove(0);
    let again = store.enqueue(&[keyed("k", "1")]).await.unwrap().remove(0);
    assert!(first.created && !again.created);
    assert_eq!(again.event, first.event);
    let mut due = keyed("k", "1");
    due.due = Due::AfterMs(1);
    for other in [keyed("k", "2"), due] {
        let error = store.enqueue(&[NewEvent::new("a", "0"), other]).await.unwrap_err();
        assert!(matches!(error, EnqueueError::KeyReused { index: 1 }), "{error:?}");
    }
    assert_eq!(rows(&sql).await, 1, "all or nothing");
});

store_test!(an_id_replays_its_request_and_refuses_another, |store, sql| {
    let id = Uuid::now_v7();
    assert!(store.enqueue(&[with_id(id, "1")]).await.unwrap()[0].created);
    let again = store.enqueue(&[with_id(id, "1")]).await.unwrap().remove(0);
    assert!(!again.created && again.event.id == id);
    let error = store.enqueue(&[with_id(id, "2")]).await.unwrap_err();
    assert!(matches!(error, EnqueueError::IdConflict { index: 0 }), "{error:?}");
});

store_test!(a_key_is_judged_before_an_id, |store, sql| {
    let id = Uuid::now_v7();
    store.enqueue(&[with_id(id, "1"), keyed("k", "2")]).await.unwrap();
    let both = NewEvent { idempotency_key: Some("k".to_owned()), ..with_id(id, "1") };
    let error = store.enqueue(&[both]).await.unwrap_err();
    assert!(matches!(error, EnqueueError::KeyReused { index: 0 }), "{error:?}");
});

store_test!(a_replay_shows_the_event_as_it_is_now, |store, sql| {
    store.enqueue(&[keyed("k", "1")]).await.unwrap();
    let lease = claim(&store, "a", 1).await[0].lease.clone();
    assert!(settle(&store, lease, outboxd::outcome::Change::Complete).await);
    assert_eq!(store.enqueue(&[keyed("k", "1")]).await.unwrap()[0].event.status, Status::Completed);
});

store_test!(duplicates_within_a_batch_replay_its_first, |store, sql| {
    let answers = store.enqueue(&[keyed("k", "1"), NewEvent::new("b", "2"), keyed("k", "1")]).await.unwrap();
    assert_eq!(answers.iter().map(|answer| answer.created).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(answers[0].event.id, answers[2].event.id);
    assert_eq!(answers[1].event.event_type, "b");
    let error = store.enqueue(&[keyed("l", "1"), keyed("l", "2")]).await.unwrap_err();
    assert!(matches!(error, EnqueueError::KeyReused { index: 1 }), "{error:?}");
    assert_eq!(rows(&sql).await, 2);
});

store_test!(a_batch_means_what_its_events_mean_one_after_the_other, |store, sql| {
    let id = Uuid::now_v7();
    // The second repeats the first by its id, so its key was never kept, and the third is new.
    let second = NewEvent { idempotency_key: Some("k".to_owned()), ..with_id(id, "1") };
    let answers = store.enqueue(&[with_id(id, "1"), second, keyed("k", "1"), keyed("k", "1")]).await.unwrap();
    assert_eq!(answers.iter().map(|answer| answer.created).collect::<Vec<_>>(), [true, false, true, false]);
    assert_eq!((answers[1].event.id.clone(), answers[3].event.id.clone()), (id.into(), answers[2].event.id.clone()));
    assert_eq!(rows(&sql).await, 2);
});

store_test!(twenty_with_one_key_make_one_event, |store, sql| {
    let racers: Vec<_> = (0..20)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.enqueue(&[keyed("k", "1")]).await.unwrap().remove(0) })
        })
        .collect();
    let mut created = 0;
    let mut ids = HashSet::new();
    for racer in racers {
        let answer = racer.await.unwrap();
        created += u32::from(answer.created);
        ids.insert(answer.event.id);
    }
    assert_eq!((created, ids.len(), rows(&sql).await), (1, 1, 1));
});

store_test!(a_plain_insert_of_two_columns_is_enough, |store, sql| {
    sql.sql(r#"INSERT INTO {events} ({event_type}, {payload}) VALUES ('invoice.created', '{"n": 1}')"#).await;
    let claimed = claim(&store, "invoice.created", 1).await.pop().unwrap();
    assert_eq!((claimed.payload.as_deref(), claimed.max_attempts), (Some(r#"{"n": 1}"#), 10));
    assert_eq!((claimed.lease.event_id.uuid().unwrap().get_version_num(), claimed.headers.len()), (7, 0));
    let event = event(&store, claimed.lease.event_id.uuid().unwrap()).await;
    assert!(between(event.created_at, event.locked_at.unwrap()) >= 0, "both clocks are one");
});

store_test!(a_plain_insert_replays_by_its_content, |store, sql| {
    sql.sql("INSERT INTO {events} ({event_type}, {payload}, {idempotency_key}) VALUES ('a', '1', 'k')").await;
    assert!(!store.enqueue(&[keyed("k", "1")]).await.unwrap()[0].created);
    let error = store.enqueue(&[keyed("k", "2")]).await.unwrap_err();
    assert!(matches!(error, EnqueueError::KeyReused { index: 0 }), "{error:?}");
});

store_test!(the_table_refuses_what_could_never_be_delivered, |store, sql| {
    let columns = "INSERT INTO {events} ({event_type}, {payload}";
    for refused in [
        format!("{columns}) VALUES ('', '1')"),
        format!("{columns}) VALUES ('a b', '1')"),
        format!("{columns}) VALUES ('ä', '1')"),
        format!("{columns}) VALUES ('{}', '1')", "x".repeat(201)),
        format!("{columns}) VALUES ('a', '{{not json')"),
        format!("{columns}) VALUES ('a', NULL)"),
        format!("{columns}, {{headers}}) VALUES ('a', '1', '[]')"),
        format!("{columns}, {{max_attempts}}) VALUES ('a', '1', 0)"),
        format!("{columns}, {{max_attempts}}) VALUES ('a', '1', 101)"),
        format!("{columns}, {{status}}) VALUES ('a', '1', 'done')"),
        format!("{columns}, {{status}}) VALUES ('a', '1', 'completed')"),
        format!("{columns}, {{available_at}}) VALUES ('a', '1', 'soon')"),
        format!("{columns}, {{processed_at}}) VALUES ('a', '1', {{now}})"),
        format!("{columns}, {{dead_at}}) VALUES ('a', '1', {{now}})"),
        format!("{columns}, {{id}}) VALUES ('a', '1', 'no uuid')"),
    ] {
        assert!(sql.try_sql(&refused).await.is_err(), "{refused}");
    }
    assert_eq!(rows(&sql).await, 0);
    sql.sql(&format!("{columns}) VALUES ('{}', '1')", "aZ09._:/-".repeat(22))).await;
});

store_test!(a_batch_of_a_thousand_keeps_its_order, |store, sql| {
    let events: Vec<NewEvent> = (0..1000).map(|n| NewEvent::new(format!("t{}", n % 7), n.to_string())).collect();
    let answers = store.enqueue(&events).await.unwrap();
    for (new, answer) in events.iter().zip(&answers) {
        assert_eq!(answer.event.event_type, new.event_type);
    }
    assert_eq!(rows(&sql).await, 1000);
});
