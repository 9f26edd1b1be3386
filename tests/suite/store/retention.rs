//! Purging: what is old and done goes, in bounded steps; everything else stays.

use outboxd::outcome::Change;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

store_test!(only_old_completed_and_skipped_events_go, |store, sql| {
    let completed = claimed(&store, "a").await.lease;
    assert!(settle(&store, completed.clone(), Change::Complete).await);
    let skipped = claimed(&store, "a").await.lease;
    assert!(settle(&store, skipped.clone(), Change::Skip { reason: String::new() }).await);
    let fresh = claimed(&store, "a").await.lease;
    assert!(settle(&store, fresh.clone(), Change::Complete).await);
    let others = [
        dead_letter(&store, "a").await,
        enqueue(&store, "a").await,
        claimed(&store, "b").await.lease.event_id.uuid().unwrap(),
    ];
    for id in
        [completed.event_id.clone(), skipped.event_id.clone(), others[0].into(), others[1].into(), others[2].into()]
    {
        sql.age(id.uuid().unwrap(), DAY * 10).await;
    }

    assert_eq!(store.purge(DAY * 20, DAY * 20, 100).await.unwrap(), 0);
    assert_eq!(store.purge(DAY, DAY * 20, 100).await.unwrap(), 1);
    assert!(store.event(&completed.event_id, false).await.unwrap().is_none());
    assert_eq!(store.attempts(&completed.event_id).await.unwrap(), [], "its log goes with it");
    assert_eq!(store.purge(DAY, DAY, 100).await.unwrap(), 1);
    assert!(store.event(&skipped.event_id, false).await.unwrap().is_none());
    for id in others.into_iter().chain([fresh.event_id.uuid().unwrap()]) {
        assert!(store.event(&id.into(), false).await.unwrap().is_some());
    }
    assert_eq!(store.attempts(&others[0].into()).await.unwrap().len(), 1);
});

store_test!(a_long_life_is_not_held_against_an_event, |store, sql| {
    let lease = claimed(&store, "a").await.lease;
    sql.age(lease.event_id.uuid().unwrap(), DAY * 30).await;
    assert!(settle(&store, lease, Change::Complete).await);
    assert_eq!(store.purge(DAY, DAY, 100).await.unwrap(), 0, "it was completed just now");
});

store_test!(a_purge_is_bounded, |store, sql| {
    for _ in 0..5 {
        let lease = claimed(&store, "a").await.lease;
        assert!(settle(&store, lease.clone(), Change::Complete).await);
        sql.age(lease.event_id.uuid().unwrap(), DAY * 2).await;
    }
    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push(store.purge(DAY, DAY, 2).await.unwrap());
    }
    assert_eq!(steps, [2, 2, 1, 0]);
});
