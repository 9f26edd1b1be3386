//! The log of what operators did: who, when and why, kept with the event.

use outboxd::store::{ActionKind, BulkChange, RequeueChange};

use super::*;

store_test!(each_change_by_hand_is_noted_with_who_and_why, |store, sql| {
    let id = dead_letter(&store, "a").await;
    let alice = Actor::new("alice").because(Some("fixed"));
    store.requeue(&id.into(), &RequeueChange::default(), &alice).await.unwrap();
    let bob = Actor::new("bob");
    store.cancel(&id.into(), "no longer", &bob).await.unwrap();

    let log = store.actions(&id.into()).await.unwrap();

    let lines: Vec<_> = log.iter().map(|line| (line.kind, line.actor.as_str(), line.note.as_deref())).collect();
    assert_eq!(lines, [(ActionKind::Requeue, "alice", Some("fixed")), (ActionKind::Cancel, "bob", None)]);
    let now = event(&store, id).await.processed_at.unwrap();
    assert!(log.iter().all(|line| between(line.at, now).abs() < 60_000_000));
});

store_test!(what_was_refused_is_not_noted, |store, sql| {
    let id = enqueue(&store, "a").await;
    store.requeue(&id.into(), &RequeueChange::default(), &somebody()).await.unwrap();
    store.discard(&id.into(), "x", &somebody()).await.unwrap();
    let change = BulkChange::Discard { reason: "x".to_owned() };
    assert!(store.change_dead_letters(&[id.into()], &change, &somebody()).await.unwrap().is_empty());
    assert_eq!(store.actions(&id.into()).await.unwrap(), []);
    assert_eq!(store.actions(&Uuid::now_v7().into()).await.unwrap(), []);
});

store_test!(the_log_is_purged_with_its_event, |store, sql| {
    let day = Duration::from_hours(24);
    let (old, young) = (dead_letter(&store, "a").await, dead_letter(&store, "a").await);
    for id in [old, young] {
        store.discard(&id.into(), "useless", &somebody()).await.unwrap();
    }
    sql.age(old, 2 * day).await;
    assert_eq!(store.purge(day, day, 10).await.unwrap(), 1);
    assert_eq!(sql.count("SELECT count(*) FROM {actions}").await, 1);
    assert_eq!(store.actions(&young.into()).await.unwrap().len(), 1);
});
