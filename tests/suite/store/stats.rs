//! What stands in the lanes, and what ended in each minute.

use outboxd::store::{LaneStats, MinuteCounts, Stats};

use super::*;

async fn stats(store: &Arc<dyn Store>) -> Stats {
    store.stats().await.unwrap()
}

/// Due, scheduled, processing, dead letters.
fn counts(lane: &LaneStats) -> (&str, [u64; 4], bool) {
    (&lane.event_type, [lane.due, lane.scheduled, lane.processing, lane.dead_letter], lane.capped)
}

store_test!(every_lane_is_counted_by_state_and_empty_ones_are_not_there, |store, sql| {
    assert_eq!(stats(&store).await.lanes, []);
    for _ in 0..3 {
        enqueue(&store, "a").await;
    }
    let later = NewEvent { due: outboxd::event::Due::AfterMs(60_000), ..NewEvent::new("a", "1") };
    enqueue_as(&store, later).await;
    claim(&store, "a", 1).await;
    dead_letter(&store, "B").await;
    let done = claimed(&store, "done").await;
    assert!(settle(&store, done.lease, Change::Complete).await);
    let found = stats(&store).await;
    let lanes: Vec<_> = found.lanes.iter().map(counts).collect();
    assert_eq!(lanes, [("B", [0, 0, 0, 1], false), ("a", [2, 1, 1, 0], false)]);
    assert!(!found.has_more_lanes);
});

store_test!(the_age_is_that_of_the_oldest_event_that_is_due_and_waits, |store, sql| {
    let ids = [enqueue(&store, "a").await, enqueue(&store, "a").await];
    let due = |id: Uuid, seconds: u64| {
        let ago = sql.ago(Duration::from_secs(seconds));
        format!("UPDATE {{events}} SET {{available_at}} = {ago} WHERE {{id}} = '{id}'")
    };
    sql.sql(&due(ids[0], 7_200)).await;
    sql.sql(&due(ids[1], 3_600)).await;
    let age = async || stats(&store).await.lanes[0].oldest_due_micros.map(|micros| micros / 60_000_000);
    assert!(matches!(age().await, Some(120 | 121)), "{:?}", age().await);
    assert_eq!(claim(&store, "a", 1).await.len(), 1);
    assert!(matches!(age().await, Some(60 | 61)), "one in somebody's hands does not wait: {:?}", age().await);
    assert_eq!(claim(&store, "a", 1).await.len(), 1);
    assert_eq!(age().await, None);
});

/// Enqueues many events at once.
async fn fill(sql: &crate::support::database::TestDb, event_type: &str, count: u32) {
    let series = if sql.is_sqlite() {
        format!(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})
             INSERT INTO {{events}} (event_type, payload) SELECT {event_type}, '1' FROM n"
        )
    } else {
        format!(
            "INSERT INTO {{events}} (event_type, payload) SELECT {event_type}, '1' FROM generate_series(1, {count}) AS n"
        )
    };
    sql.sql(&series).await;
}

store_test!(a_count_stops_at_a_hundred_thousand_and_says_so_while_the_age_stays_exact, |store, sql| {
    fill(&sql, "'deep'", 100_050).await;
    fill(&sql, "'shallow'", 2_000).await;
    let ago = sql.ago(Duration::from_secs(600));
    let oldest = format!(
        "UPDATE {{events}} SET {{available_at}} = {ago} WHERE {{id}} = (SELECT {{id}} FROM {{events}}
         WHERE event_type = 'deep' LIMIT 1)"
    );
    sql.sql(&oldest).await;
    let found = stats(&store).await;
    let lanes: Vec<_> = found.lanes.iter().map(counts).collect();
    let [(_, [deep, 0, 0, 0], true), ("shallow", [2_000, 0, 0, 0], false)] = lanes.as_slice() else {
        panic!("{lanes:?}")
    };
    assert_eq!(*deep, 100_000);
    assert!(found.lanes[0].oldest_due_micros.unwrap() >= 598_000_000);
    sql.sql("DELETE FROM {events} WHERE event_type = 'shallow'").await;
    assert_eq!(counts(&stats(&store).await.lanes[0]), ("deep", [100_000, 0, 0, 0], true));
});

store_test!(more_lanes_than_can_be_shown_are_counted_in_pages_and_said, |store, sql| {
    let name = if sql.is_sqlite() { "printf('t%04d', n)" } else { "'t' || lpad(n::text, 4, '0')" };
    fill(&sql, name, 1_000).await;
    let found = stats(&store).await;
    assert_eq!((found.lanes.len(), found.has_more_lanes), (1_000, false));
    assert!(found.lanes.is_sorted_by(|a, b| a.event_type < b.event_type));
    assert!(found.lanes.iter().all(|lane| lane.due == 1 && !lane.capped));
    enqueue(&store, "u").await;
    let found = stats(&store).await;
    assert_eq!((found.lanes.len(), found.has_more_lanes), (1_000, true));
});

store_test!(minutes_add_up_for_each_outbox_and_go_after_two_days, |store, sql| {
    let some = MinuteCounts { completed: 3, retried: 1, ..MinuteCounts::default() };
    let more = MinuteCounts { completed: 1, deferred: 2, skipped: 4, dead_lettered: 5, ..MinuteCounts::default() };
    store.add_minute("default", some).await.unwrap();
    store.add_minute("default", more).await.unwrap();
    store.add_minute("other", more).await.unwrap();
    let minutes = store.minutes("default", 60).await.unwrap();
    let sum = |count: fn(&MinuteCounts) -> u64| minutes.iter().map(|minute| count(&minute.counts)).sum::<u64>();
    // The minute may have changed in between.
    assert!(minutes.len() <= 2, "{minutes:?}");
    assert!(minutes.iter().all(|minute| minute.minute.as_micros() % 60_000_000 == 0));
    assert_eq!(
        [sum(|c| c.completed), sum(|c| c.retried), sum(|c| c.deferred), sum(|c| c.skipped), sum(|c| c.dead_lettered)],
        [4, 1, 2, 4, 5]
    );
    for (hours, kept, shown) in [(2, true, false), (49, false, false)] {
        let ago = sql.ago(Duration::from_secs(hours * 3_600));
        sql.sql(&format!("UPDATE {{minutes}} SET minute = {ago} WHERE outbox = 'other'")).await;
        store.add_minute("other", some).await.unwrap();
        assert!(!store.minutes("other", 60).await.unwrap().is_empty());
        let rows = sql.count("SELECT count(*) FROM {minutes} WHERE outbox = 'other'").await;
        assert_eq!((rows > 1, store.minutes("other", 60).await.unwrap().len() > 1), (kept, shown), "{hours}");
        sql.sql(&format!(
            "DELETE FROM {{minutes}} WHERE outbox = 'other' AND minute > {}",
            sql.ago(Duration::from_secs(90))
        ))
        .await;
    }
});
