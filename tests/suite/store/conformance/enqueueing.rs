//! Enqueueing through the service, and what a table refuses.

use outboxd::store::{EnqueueError, StoreError};
use uuid::Uuid;

use super::*;

on_every_table!(an_event_is_as_it_was_asked_for, |ground| {
    let id = ground.enqueue().await;
    let event = ground.store.event(&id, true).await.unwrap().unwrap();
    assert_eq!((event.event_type.as_str(), event.status, event.attempts), (ground.kind, Status::Pending, 0));
    assert_eq!((event.payload.as_deref(), event.max_attempts), (Some(r#"{"n": 1}"#), ground.max_attempts));
    assert_eq!((event.locked_at, event.processed_at, event.last_error), (None, None, None));
    assert_eq!(event.available_at, event.created_at);
});

on_every_table!(all_of_a_batch_or_none, |ground| {
    if !ground.takes_ids {
        return;
    }
    let known = Uuid::now_v7();
    ground.enqueue_as(NewEvent { id: Some(known), ..NewEvent::new(ground.kind, "1") }).await;
    let conflict = NewEvent { id: Some(known), ..NewEvent::new(ground.kind, "2") };
    let batch = [NewEvent::new(ground.kind, "3"), conflict, NewEvent::new(ground.kind, "4")];
    let error = ground.store.enqueue(&batch).await.unwrap_err();
    assert!(matches!(error, EnqueueError::IdConflict { index: 1 }), "{error:?}");
    assert_eq!(ground.sql.count("SELECT count(*) FROM {events}").await, 1);
});

on_every_table!(the_same_id_with_the_same_content_is_a_replay, |ground| {
    if !ground.takes_ids {
        return;
    }
    let new = NewEvent { id: Some(Uuid::now_v7()), ..NewEvent::new(ground.kind, r#"{"a": [1, 2]}"#) };
    let first = ground.store.enqueue(std::slice::from_ref(&new)).await.unwrap().remove(0);
    let again = ground.store.enqueue(&[new]).await.unwrap().remove(0);
    assert_eq!((first.created, again.created), (true, false));
    assert_eq!(first.event.id, again.event.id);
    assert_eq!(ground.sql.count("SELECT count(*) FROM {events}").await, 1);
});

on_every_table!(what_the_table_has_no_column_for_is_refused, |ground| {
    if ground.is_own {
        return;
    }
    let plain = || NewEvent::new(ground.kind, "1");
    let mut refused = vec![
        NewEvent { idempotency_key: Some("k".to_owned()), ..plain() },
        NewEvent { headers: [("a".to_owned(), "b".to_owned())].into(), ..plain() },
    ];
    if !ground.has_subject {
        refused.push(NewEvent { subject: Some("s".to_owned()), ..plain() });
    }
    if !ground.takes_ids {
        refused.push(NewEvent { id: Some(Uuid::now_v7()), ..plain() });
    }
    if ground.other_kind.is_none() {
        refused.push(NewEvent::new("other", "1"));
    }
    for event in refused {
        let error = ground.store.enqueue(std::slice::from_ref(&event)).await.unwrap_err();
        assert!(matches!(error, EnqueueError::Store(StoreError::Unsupported { .. })), "{event:?}: {error:?}");
    }
    assert_eq!(ground.sql.count("SELECT count(*) FROM {events}").await, 0);
});
