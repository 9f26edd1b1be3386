//! Every way out of processing, and the lease that guards it.

use outboxd::event::Status;
use outboxd::lease::Lease;
use outboxd::outcome::Change;
use outboxd::store::StoreError;

use super::*;

store_test!(complete_ends_the_event_and_keeps_its_history, |store, sql| {
    let first = claimed(&store, "a").await;
    let id = first.lease.event_id.clone();
    assert!(settle(&store, first.lease, retry(0)).await);
    sql.make_due(id.uuid().unwrap()).await;
    let second = store.claim_by_id(&id, LEASE).await.unwrap().unwrap();
    assert!(settle(&store, second.lease, Change::Complete).await);

    let event = event(&store, id.uuid().unwrap()).await;
    assert_eq!((event.status, event.attempts, event.claim_no), (Status::Completed, 1, 2));
    assert_eq!((event.locked_at, event.lease_until, event.dead_at), (None, None, None));
    assert!(event.processed_at.is_some());
    assert_eq!(event.last_error.as_deref(), Some("boom"));
});

store_test!(retry_spends_an_attempt_and_waits, |store, sql| {
    let claimed = claimed(&store, "a").await;
    let before = event(&store, claimed.lease.event_id.uuid().unwrap()).await;
    assert!(settle(&store, claimed.lease.clone(), retry(30)).await);
    let after = event(&store, claimed.lease.event_id.uuid().unwrap()).await;
    assert_eq!((after.status, after.attempts, after.processed_at), (Status::Pending, 1, None));
    assert_eq!((after.locked_at, after.lease_until), (None, None));
    let waits = between(before.locked_at.unwrap(), after.available_at);
    assert!((29_900_000..35_000_000).contains(&waits), "{waits}");
    assert!(store.claim_by_id(&claimed.lease.event_id, LEASE).await.unwrap().is_none());
});

store_test!(a_time_out_waits_for_the_end_of_the_lease, |store, sql| {
    let claimed = claimed(&store, "a").await;
    let lease_until = event(&store, claimed.lease.event_id.uuid().unwrap()).await.lease_until.unwrap();
    let change = Change::Retry { delay: Duration::from_secs(1), after_lease: true, error: "slow".to_owned() };
    assert!(settle(&store, claimed.lease.clone(), change).await);
    assert_eq!(event(&store, claimed.lease.event_id.uuid().unwrap()).await.available_at, lease_until);
});

store_test!(defer_spends_no_attempt_and_remembers_the_first_of_its_chain, |store, sql| {
    let claimed = claimed(&store, "a").await;
    let id = claimed.lease.event_id.clone();
    let defer = || Change::Defer { delay: Duration::from_secs(5), reason: "later".to_owned() };
    assert!(settle(&store, claimed.lease, defer()).await);
    let first = event(&store, id.uuid().unwrap()).await;
    assert_eq!((first.status, first.attempts, first.last_error.as_deref()), (Status::Pending, 0, Some("later")));
    let since = first.deferred_since.unwrap();

    sql.make_due(id.uuid().unwrap()).await;
    let again = store.claim_by_id(&id, LEASE).await.unwrap().unwrap();
    assert!(again.deferred_for.is_some());
    assert!(settle(&store, again.lease, defer()).await);
    assert_eq!(event(&store, id.uuid().unwrap()).await.deferred_since, Some(since));

    sql.make_due(id.uuid().unwrap()).await;
    let last = store.claim_by_id(&id, LEASE).await.unwrap().unwrap();
    assert!(settle(&store, last.lease, retry(1)).await);
    assert_eq!(event(&store, id.uuid().unwrap()).await.deferred_since, None);
});

store_test!(skip_and_dead_letter_are_terminal, |store, sql| {
    let skipped = claimed(&store, "a").await.lease;
    assert!(settle(&store, skipped.clone(), Change::Skip { reason: "not wanted".to_owned() }).await);
    let event_now = event(&store, skipped.event_id.uuid().unwrap()).await;
    assert_eq!((event_now.status, event_now.attempts, event_now.dead_at), (Status::Skipped, 0, None));
    assert_eq!((event_now.processed_at.is_some(), event_now.last_error.as_deref()), (true, Some("not wanted")));

    for (spends_attempt, attempts) in [(true, 1), (false, 0)] {
        let lease = claimed(&store, "a").await.lease;
        let change = Change::DeadLetter { spends_attempt, error: "never".to_owned() };
        assert!(settle(&store, lease.clone(), change).await);
        let event_now = event(&store, lease.event_id.uuid().unwrap()).await;
        assert_eq!((event_now.status, event_now.attempts), (Status::DeadLetter, attempts));
        assert!(event_now.processed_at.is_some() && event_now.dead_at.is_some());
    }
});

store_test!(release_gives_back_an_unused_claim, |store, sql| {
    let claimed = claimed(&store, "a").await;
    let mut given_back = settlement(claimed.lease.clone(), Change::Release);
    given_back.attempt = None;
    assert_eq!(store.settle(&[given_back]).await.unwrap(), std::slice::from_ref(&claimed.lease));
    let event = event(&store, claimed.lease.event_id.uuid().unwrap()).await;
    assert_eq!((event.status, event.attempts, event.claim_no), (Status::Pending, 0, 1));
    assert_eq!((event.available_at, event.locked_at), (claimed.available_at, None));
    assert_eq!(store.attempts(&event.id).await.unwrap(), []);
});

store_test!(a_stale_lease_changes_nothing_and_logs_nothing, |store, sql| {
    let old = claimed(&store, "a").await.lease;
    sql.expire_lease(old.event_id.uuid().unwrap()).await;
    store.reap_by_id(&old.event_id).await.unwrap().unwrap();
    let new = store.claim_by_id(&old.event_id, LEASE).await.unwrap().unwrap().lease;
    let before = event(&store, old.event_id.uuid().unwrap()).await;
    let changes = [
        Change::Complete,
        retry(0),
        Change::Defer { delay: LEASE, reason: String::new() },
        Change::Skip { reason: String::new() },
        bury(),
        Change::Release,
    ];
    for change in changes {
        assert!(!settle(&store, old.clone(), change).await);
    }
    assert!(store.extend(&old, LEASE).await.unwrap().is_none());
    assert_eq!(event(&store, old.event_id.uuid().unwrap()).await, before);
    assert_eq!(store.attempts(&old.event_id).await.unwrap().len(), 1, "the reap's line alone");
    assert!(settle(&store, new.clone(), Change::Complete).await);
    assert!(!settle(&store, new, Change::Complete).await, "a lease settles once");
});

store_test!(of_a_batch_only_the_live_leases_settle, |store, sql| {
    let good: Vec<Lease> =
        [claimed(&store, "a").await, claimed(&store, "b").await].iter().map(|c| c.lease.clone()).collect();
    let stale = Lease { claim_no: good[0].claim_no + 1, ..claimed(&store, "a").await.lease };
    let unknown = Lease { event_id: Uuid::now_v7().into(), claim_no: 1 };
    let batch = [good[0].clone(), stale, unknown, good[1].clone()].map(|lease| settlement(lease, Change::Complete));
    let mut applied = store.settle(&batch).await.unwrap();
    applied.sort();
    let mut expected = good.clone();
    expected.sort();
    assert_eq!(applied, expected);
    assert_eq!(store.settle(&[]).await.unwrap(), []);
});

store_test!(a_lost_lease_in_the_batch_does_not_hide_the_live_one_of_its_event, |store, sql| {
    let lost = claimed(&store, "a").await.lease;
    sql.expire_lease(lost.event_id.uuid().unwrap()).await;
    store.reap_by_id(&lost.event_id).await.unwrap().unwrap();
    let live = store.claim_by_id(&lost.event_id, LEASE).await.unwrap().unwrap().lease;
    assert_eq!(
        store.settle(&[settlement(lost, retry(1)), settlement(live.clone(), Change::Complete)]).await.unwrap(),
        std::slice::from_ref(&live)
    );
    assert_eq!(event(&store, live.event_id.uuid().unwrap()).await.status, Status::Completed);
});

store_test!(a_batch_with_a_refused_settlement_changes_nothing, |store, sql| {
    let (fine, refused) = (claimed(&store, "a").await.lease, claimed(&store, "a").await.lease);
    // A rule that the application added: here, one against this settlement's error.
    let rule = if sql.is_sqlite() {
        "CREATE TRIGGER rule BEFORE UPDATE ON {events} WHEN NEW.{last_error} = 'boom' BEGIN SELECT RAISE(ABORT, 'no'); END"
    } else {
        "ALTER TABLE {events} ADD CHECK ({last_error} <> 'boom')"
    };
    sql.sql(rule).await;
    let fine_one = Settlement { attempt: None, ..settlement(fine.clone(), Change::Complete) };
    let error = store.settle(&[fine_one.clone(), settlement(refused, retry(1))]).await.unwrap_err();
    assert!(matches!(error, StoreError::Data { .. }), "{error:?}");
    assert_eq!(event(&store, fine.event_id.uuid().unwrap()).await.status, Status::Processing);
    assert_eq!(store.settle(&[fine_one]).await.unwrap(), [fine]);
});

store_test!(a_claim_that_lost_its_instant_can_be_settled_and_logged, |store, sql| {
    let lease = claimed(&store, "a").await.lease;
    sql.sql(&format!("UPDATE {{events}} SET {{locked_at}} = NULL WHERE {{id}} = '{}'", lease.event_id)).await;
    assert!(settle(&store, lease.clone(), retry(1)).await);
    assert_eq!(store.attempts(&lease.event_id).await.unwrap().len(), 1);
});

store_test!(a_thousand_settle_at_once, |store, sql| {
    let events: Vec<NewEvent> = (0..1000).map(|n| NewEvent::new("a", n.to_string())).collect();
    store.enqueue(&events).await.unwrap();
    let claimed = claim(&store, "a", 1000).await;
    let batch: Vec<Settlement> = claimed.iter().map(|c| settlement(c.lease.clone(), Change::Complete)).collect();
    assert_eq!(store.settle(&batch).await.unwrap().len(), 1000);
    assert_eq!(sql.count("SELECT count(*) FROM {events} WHERE {status} = {completed}").await, 1000);
    assert_eq!(sql.count("SELECT count(*) FROM {attempts_log}").await, 1000);
});

store_test!(the_attempt_log_says_what_happened, |store, sql| {
    let claimed = claimed(&store, "a").await;
    let locked_at = event(&store, claimed.lease.event_id.uuid().unwrap()).await.locked_at.unwrap();
    let mut told = settlement(claimed.lease.clone(), retry(1));
    let line = told.attempt.as_mut().unwrap();
    line.response = Some("it's \"broken\" 🦀".to_owned());
    store.settle(&[told]).await.unwrap();
    let log = store.attempts(&claimed.lease.event_id).await.unwrap();
    assert_eq!(log.len(), 1);
    let line = &log[0];
    assert_eq!((line.number, line.claim_no, line.started_at, line.duration_ms), (1, 1, locked_at, 12));
    assert_eq!((line.outcome.as_str(), line.status_code, line.error.as_deref()), ("retry", Some(503), Some("no")));
    assert_eq!(line.response.as_deref(), Some("it's \"broken\" 🦀"));
});

store_test!(hostile_text_is_kept_as_it_is, |store, sql| {
    for text in ["'; DROP TABLE x; --", "\"$1\" ?1 {now} \\", "é漢🦀\u{202e}\u{7f}", &"🦀".repeat(500), "\t\r\n"]
    {
        let lease = claimed(&store, "a").await.lease;
        let change = Change::DeadLetter { spends_attempt: true, error: text.to_owned() };
        assert!(settle(&store, lease.clone(), change).await);
        assert_eq!(event(&store, lease.event_id.uuid().unwrap()).await.last_error.as_deref(), Some(text));
    }
});

store_test!(extend_moves_the_end_of_a_live_lease, |store, sql| {
    let claimed = claimed(&store, "a").await;
    let before = event(&store, claimed.lease.event_id.uuid().unwrap()).await.lease_until.unwrap();
    assert_eq!(store.extend(&claimed.lease, Duration::from_secs(600)).await.unwrap().as_ref(), Some(&claimed.lease));
    let moved = between(before, event(&store, claimed.lease.event_id.uuid().unwrap()).await.lease_until.unwrap());
    assert!(moved >= 539_000_000, "{moved}");
    assert!(settle(&store, claimed.lease.clone(), Change::Complete).await);
    assert!(store.extend(&claimed.lease, LEASE).await.unwrap().is_none());
});
