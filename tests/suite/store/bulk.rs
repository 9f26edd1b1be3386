//! Many dead letters at once: by ids or by filter, once each, whoever else is at it.

use std::collections::BTreeSet;

use outboxd::event::{EventId, Status};
use outboxd::store::{
    BulkChange, BulkReport, BulkRequest, DeadLetterFilter, MAX_BULK, RequeueChange, Selection, change_many,
};

use super::*;

fn requeue() -> BulkChange {
    BulkChange::Requeue { spread: Duration::ZERO }
}

fn by_filter(filter: DeadLetterFilter, change: BulkChange, limit: u32) -> BulkRequest {
    BulkRequest { selection: Selection::Filter { filter, after: None }, change, limit, dry_run: false }
}

fn by_ids(ids: &[Uuid], change: BulkChange) -> BulkRequest {
    let selection = Selection::Ids(ids.iter().map(|id| EventId::Uuid(*id)).collect());
    BulkRequest { selection, change, limit: MAX_BULK, dry_run: false }
}

fn of_type(event_type: &str) -> DeadLetterFilter {
    DeadLetterFilter { types: vec![event_type.to_owned()], ..DeadLetterFilter::default() }
}

async fn change(store: &Arc<dyn Store>, request: &BulkRequest) -> BulkReport {
    change_many(store.as_ref(), request, &somebody()).await.unwrap()
}

/// Dead letters, written as they would stand there.
async fn many(sql: &crate::support::database::TestDb, event_type: &str, count: u32) {
    let numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ";
    let at = if sql.is_sqlite() { "{now} - n" } else { "now() - n * interval '1 microsecond'" };
    let insert = format!(
        "INSERT INTO {{events}} (event_type, payload, subject, status, attempts, processed_at, dead_at, last_error)
         {numbers} {count}) SELECT '{event_type}', '{{}}', 'thing/' || (n % 10), 'dead_letter', 1, {at}, {at}, 'error ' || (n % 7)
         FROM numbers"
    );
    assert_eq!(sql.sql(&insert).await, u64::from(count));
}

async fn with_status(sql: &crate::support::database::TestDb, status: &str) -> i64 {
    sql.count(&format!("SELECT count(*) FROM {{events}} WHERE {{status}} = '{status}'")).await
}

store_test!(a_filter_changes_what_matches_and_nothing_else, |store, sql| {
    many(&sql, "a", 1_200).await;
    many(&sql, "b", 30).await;
    let report = change(&store, &by_filter(of_type("a"), requeue(), MAX_BULK)).await;
    assert_eq!((report.matched, report.changed, report.more, report.next), (1_200, 1_200, false, None));
    assert_eq!(report.sample_ids.len(), 100);
    assert_eq!((with_status(&sql, "pending").await, with_status(&sql, "dead_letter").await), (1_200, 30));
    assert_eq!(sql.count("SELECT count(*) FROM {actions} WHERE action = 'requeue'").await, 1_200);
    assert_eq!(sql.count("SELECT count(*) FROM {events} WHERE {requeues} = 1 AND {attempts} = 0").await, 1_200);
});

store_test!(every_key_of_a_filter_must_fit, |store, sql| {
    many(&sql, "a", 140).await;
    many(&sql, "b", 70).await;
    let subject = DeadLetterFilter { subject: Some("thing/3".to_owned()), ..DeadLetterFilter::default() };
    let error = DeadLetterFilter { error_contains: Some("error 5".to_owned()), ..DeadLetterFilter::default() };
    let both = DeadLetterFilter { subject: Some("thing/3".to_owned()), ..error.clone() };
    let two = DeadLetterFilter { types: vec!["b".to_owned(), "a".to_owned(), "b".to_owned()], ..both.clone() };
    for (filter, matched) in [(subject, 21), (error, 30), (both, 3), (two, 3), (of_type("b"), 70), (of_type("c"), 0)] {
        let request = BulkRequest { dry_run: true, ..by_filter(filter.clone(), requeue(), MAX_BULK) };
        let report = change(&store, &request).await;
        assert_eq!((report.matched, report.changed, report.more), (matched, 0, false), "{filter:?}");
        assert_eq!(report.sample_ids.len() as u64, matched.min(100));
    }
    assert_eq!(with_status(&sql, "dead_letter").await, 210, "a dry run changes nothing");
});

store_test!(instants_of_death_bound_a_filter_on_both_sides, |store, sql| {
    let mut ids = Vec::new();
    for seconds in [300, 200, 100] {
        let id = dead_letter(&store, "a").await;
        let at = sql.ago(Duration::from_secs(seconds));
        sql.sql(&format!("UPDATE {{events}} SET {{dead_at}} = {at} WHERE {{id}} = '{id}'")).await;
        ids.push((id, event(&store, id).await.dead_at.unwrap()));
    }
    let found = |dead_after: Option<usize>, dead_before: Option<usize>, types: Vec<String>| {
        let at = |place: Option<usize>| place.map(|place| ids[place].1);
        let filter = DeadLetterFilter {
            dead_after: at(dead_after),
            dead_before: at(dead_before),
            types,
            ..DeadLetterFilter::default()
        };
        let store = Arc::clone(&store);
        async move { store.find_dead_letters(&filter, None, 10).await.unwrap().ids }
    };
    let id = |place: usize| EventId::Uuid(ids[place].0);
    for types in [vec![], vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]] {
        assert_eq!(found(Some(0), None, types.clone()).await, [id(2), id(1)]);
        assert_eq!(found(None, Some(2), types.clone()).await, [id(1), id(0)]);
        assert_eq!(found(Some(0), Some(2), types.clone()).await, [id(1)]);
        assert!(found(Some(1), Some(1), types).await.is_empty());
    }
});

store_test!(a_limit_leaves_more_and_the_same_request_goes_on, |store, sql| {
    many(&sql, "a", 1_250).await;
    let request = by_filter(of_type("a"), requeue(), 600);
    let mut changed = Vec::new();
    loop {
        let report = change(&store, &request).await;
        changed.push(report.changed);
        assert_eq!(report.more, report.next.is_some());
        if !report.more {
            break;
        }
    }
    assert_eq!(changed, [600, 600, 50]);
    many(&sql, "a", 600).await;
    assert!(!change(&store, &request).await.more, "what was there is exactly what was asked for");
});

store_test!(a_dry_run_goes_on_where_it_stopped, |store, sql| {
    many(&sql, "a", 250).await;
    let mut request = BulkRequest { dry_run: true, ..by_filter(of_type("a"), requeue(), 100) };
    let mut seen = BTreeSet::new();
    loop {
        let report = change(&store, &request).await;
        seen.extend(report.sample_ids);
        let Some(next) = report.next else { break };
        request.selection = Selection::Filter { filter: of_type("a"), after: Some(next) };
    }
    assert_eq!(seen.len(), 250);
});

store_test!(a_rare_filter_is_found_among_many, |store, sql| {
    many(&sql, "a", 4_500).await;
    sql.sql("UPDATE {events} SET {last_error} = 'needle' WHERE {id} = (SELECT {id} FROM {events} ORDER BY {dead_at} LIMIT 1)")
        .await;
    let filter = DeadLetterFilter { error_contains: Some("needle".to_owned()), ..DeadLetterFilter::default() };
    for types in [vec![], vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]] {
        let request = BulkRequest {
            dry_run: true,
            ..by_filter(DeadLetterFilter { types, ..filter.clone() }, requeue(), MAX_BULK)
        };
        let report = change(&store, &request).await;
        assert_eq!((report.matched, report.more), (1, false));
    }
});

store_test!(ids_are_changed_as_far_as_they_are_dead_letters, |store, sql| {
    let (dead, pending, gone) = (dead_letter(&store, "a").await, enqueue(&store, "a").await, Uuid::now_v7());
    let discard = BulkChange::Discard { reason: "useless".to_owned() };
    let report = change(&store, &by_ids(&[dead, pending, gone, dead], discard)).await;
    assert_eq!((report.matched, report.changed, report.more), (1, 1, false));
    assert_eq!(report.sample_ids, [EventId::Uuid(dead)]);
    let discarded = event(&store, dead).await;
    assert_eq!((discarded.status, discarded.last_error.as_deref()), (Status::Skipped, Some("useless")));
    assert!(discarded.processed_at.is_some() && discarded.dead_at.is_none());
    assert_eq!(event(&store, pending).await.status, Status::Pending);
});

store_test!(a_limit_holds_for_ids_too, |store, sql| {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(dead_letter(&store, "a").await);
    }
    let request = BulkRequest { limit: 3, ..by_ids(&ids, requeue()) };
    let first = change(&store, &request).await;
    let second = change(&store, &request).await;
    assert_eq!((first.changed, first.more, second.changed, second.more), (3, true, 2, false));
});

store_test!(two_at_once_change_each_event_once, |store, sql| {
    many(&sql, "a", 1_500).await;
    let both: Vec<_> = (0..2)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { change(&store, &by_filter(of_type("a"), requeue(), MAX_BULK)).await })
        })
        .collect();
    let mut changed = 0;
    for one in both {
        changed += one.await.unwrap().changed;
    }
    assert_eq!(changed, 1_500);
    assert_eq!(sql.count("SELECT count(*) FROM {events} WHERE {requeues} = 1").await, 1_500);
    assert_eq!(sql.count("SELECT count(*) FROM {actions}").await, 1_500);
});

store_test!(due_times_are_spread, |store, sql| {
    many(&sql, "a", 200).await;
    let spread = BulkChange::Requeue { spread: Duration::from_hours(10) };
    assert_eq!(change(&store, &by_filter(of_type("a"), spread, MAX_BULK)).await.changed, 200);
    let in_hours = |hours: u64| {
        let later = sql.interval(Duration::from_hours(hours));
        format!("SELECT count(*) FROM {{events}} WHERE {{available_at}} < {{now}} + {later}")
    };
    let (one, five, all) =
        (sql.count(&in_hours(1)).await, sql.count(&in_hours(5)).await, sql.count(&in_hours(11)).await);
    assert!((1..80).contains(&one) && (50..150).contains(&five) && all == 200, "{one} {five} {all}");
});

store_test!(a_dead_letter_that_comes_back_meanwhile_is_not_changed_twice_by_one_request, |store, sql| {
    let older = dead_letter(&store, "a").await;
    let ago = sql.ago(Duration::from_secs(100));
    sql.sql(&format!("UPDATE {{events}} SET {{dead_at}} = {ago} WHERE {{id}} = '{older}'")).await;
    let first = dead_letter(&store, "a").await;
    let found = store.find_dead_letters(&of_type("a"), None, 1).await.unwrap();
    assert_eq!(found.ids, [EventId::Uuid(first)]);
    store.requeue(&first.into(), &RequeueChange::default(), &somebody()).await.unwrap();
    let lease = store.claim_by_id(&first.into(), LEASE).await.unwrap().unwrap().lease;
    assert!(settle(&store, lease, bury()).await);
    let behind = store.find_dead_letters(&of_type("a"), found.next.as_ref(), 10).await.unwrap();
    assert_eq!(behind.ids, [EventId::Uuid(older)], "the other one now stands before the place");
});

store_test!(a_request_that_is_dropped_leaves_nothing_half_done_and_goes_on_when_it_is_made_again, |store, sql| {
    many(&sql, "a", 3_000).await;
    let request = by_filter(of_type("a"), requeue(), MAX_BULK);
    let mut again = 0;
    // However far the first one comes.
    let dropped = tokio::time::timeout(Duration::from_millis(20), change(&store, &request)).await;
    while with_status(&sql, "dead_letter").await > 0 {
        again += change(&store, &request).await.changed;
    }
    let first = dropped.map_or(3_000 - again, |report| report.changed);
    assert_eq!(first + again, 3_000);
    assert_eq!(sql.count("SELECT count(*) FROM {events} WHERE {requeues} = 1").await, 3_000);
    assert_eq!(sql.count("SELECT count(*) FROM {actions}").await, 3_000);
});

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_an_application_has_locked_is_passed_by_and_not_waited_for() {
    let sql = crate::support::database::TestDb::empty_postgres().await;
    let store = sql.migrated().await;
    many(&sql, "a", 10).await;
    let pool = sqlx::PgPool::connect(&sql.options.url).await.unwrap();
    let mut application = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM outbox.event LIMIT 1 FOR UPDATE").execute(&mut *application).await.unwrap();
    let request = by_filter(of_type("a"), requeue(), MAX_BULK);
    let report = change(&store, &request).await;
    assert_eq!((report.matched, report.changed), (10, 9));
    application.rollback().await.unwrap();
    assert_eq!(change(&store, &request).await.changed, 1);
}
