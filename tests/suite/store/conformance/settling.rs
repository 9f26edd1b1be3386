//! Every way out of processing, and the lease that guards it.

use std::time::Duration;

use outboxd::lease::Lease;

use super::*;

on_every_table!(complete_ends_the_event_and_keeps_its_history, |ground| {
    let first = ground.claimed().await;
    let id = first.lease.event_id.clone();
    assert!(ground.settle(&first.lease, retry(0)).await);
    ground.sql.make_due(&id).await;
    let second = ground.claim_by_id(&id).await.unwrap();
    assert_eq!((second.attempts, second.lease.claim_no > first.lease.claim_no), (1, true));
    assert!(ground.settle(&second.lease, Change::Complete).await);
    let event = ground.event(&id).await;
    assert_eq!((event.status, event.attempts), (Status::Completed, 1));
    assert_eq!((event.locked_at, event.lease_until, event.dead_at), (None, None, None));
    assert!(event.processed_at.is_some());
    assert_eq!(event.last_error.as_deref(), Some("boom"));
});

on_every_table!(retry_spends_an_attempt_and_waits, |ground| {
    let claimed = ground.claimed().await;
    let before = ground.event(&claimed.lease.event_id).await.locked_at.unwrap();
    assert!(ground.settle(&claimed.lease, retry(30)).await);
    let after = ground.event(&claimed.lease.event_id).await;
    assert_eq!((after.status, after.attempts, after.processed_at), (Status::Pending, 1, None));
    assert_eq!((after.locked_at, after.lease_until), (None, None));
    let waits = after.available_at.as_micros() - before.as_micros();
    assert!((29_900_000..35_000_000).contains(&waits), "{waits}");
    assert!(ground.claim_by_id(&claimed.lease.event_id).await.is_none());
});

on_every_table!(a_retry_without_delay_cannot_bring_back_the_old_lease, |ground| {
    let mut claimed = ground.claimed().await;
    let id = claimed.lease.event_id.clone();
    for _ in 0..10 {
        assert!(ground.settle(&claimed.lease, Change::Release).await);
        // Due again within a few units of the columns' precision.
        let again = loop {
            if let Some(again) = ground.claim_by_id(&id).await {
                break again;
            }
        };
        assert!(again.lease.claim_no > claimed.lease.claim_no, "{again:?} after {claimed:?}");
        assert!(!ground.settle(&claimed.lease, Change::Complete).await, "a lease settles once");
        claimed = again;
    }
});

on_every_table!(a_time_out_waits_for_the_end_of_the_lease, |ground| {
    let claimed = ground.claimed().await;
    let lease_until = ground.event(&claimed.lease.event_id).await.lease_until.unwrap();
    let change = Change::Retry { delay: Duration::from_secs(1), after_lease: true, error: "slow".to_owned() };
    assert!(ground.settle(&claimed.lease, change).await);
    assert_eq!(ground.event(&claimed.lease.event_id).await.available_at, lease_until);
});

on_every_table!(defer_spends_no_attempt, |ground| {
    let claimed = ground.claimed().await;
    let change = Change::Defer { delay: Duration::from_secs(5), reason: "later".to_owned() };
    assert!(ground.settle(&claimed.lease, change).await);
    let event = ground.event(&claimed.lease.event_id).await;
    assert_eq!((event.status, event.attempts, event.last_error.as_deref()), (Status::Pending, 0, Some("later")));
    assert!(!ground.store.is_due(&event.id).await.unwrap());
});

on_every_table!(what_is_skipped_is_done_with, |ground| {
    let claimed = ground.claimed().await;
    assert!(ground.settle(&claimed.lease, Change::Skip { reason: "not wanted".to_owned() }).await);
    let event = ground.event(&claimed.lease.event_id).await;
    let expected = if ground.has_skipped { Status::Skipped } else { Status::Completed };
    assert_eq!((event.status, event.attempts, event.dead_at), (expected, 0, None));
    assert_eq!((event.processed_at.is_some(), event.last_error.as_deref()), (true, Some("not wanted")));
});

on_every_table!(what_is_buried_is_a_dead_letter, |ground| {
    for (spends_attempt, attempts) in [(true, 1), (false, 0)] {
        let claimed = ground.claimed().await;
        let change = Change::DeadLetter { spends_attempt, error: "never".to_owned() };
        assert!(ground.settle(&claimed.lease, change).await);
        let event = ground.event(&claimed.lease.event_id).await;
        assert_eq!((event.status, event.attempts), (Status::DeadLetter, attempts));
        assert!(event.processed_at.is_some() && event.dead_at.is_some());
        assert_eq!(event.last_error.as_deref(), Some("never"));
    }
});

on_every_table!(release_gives_back_an_unused_claim, |ground| {
    let claimed = ground.claimed().await;
    assert!(ground.settle(&claimed.lease, Change::Release).await);
    let event = ground.event(&claimed.lease.event_id).await;
    assert_eq!((event.status, event.attempts, event.locked_at), (Status::Pending, 0, None));
    // Where only the instant of a claim is its lease, a few units of its precision must pass before the next.
    let moved = event.available_at.as_micros() - claimed.available_at.as_micros();
    assert!(if ground.is_own { moved == 0 } else { (0..1_000_000).contains(&moved) }, "{moved}");
});

on_every_table!(a_lost_lease_changes_nothing, |ground| {
    let old = ground.claimed().await.lease;
    ground.expire(&old.event_id).await;
    ground.store.reap_by_id(&old.event_id).await.unwrap().unwrap();
    let new = ground.claim_by_id(&old.event_id).await.unwrap().lease;
    assert!(new.claim_no > old.claim_no);
    let before = ground.event(&old.event_id).await;
    for change in [
        Change::Complete,
        retry(0),
        Change::Defer { delay: LEASE, reason: String::new() },
        Change::Skip { reason: String::new() },
        bury(),
        Change::Release,
    ] {
        assert!(!ground.settle(&old, change).await);
    }
    assert!(ground.store.extend(&old, LEASE).await.unwrap().is_none());
    assert_eq!(ground.event(&old.event_id).await, before);
    let both = [settlement(old, retry(1)), settlement(new.clone(), Change::Complete)];
    assert_eq!(ground.store.settle(&both).await.unwrap(), std::slice::from_ref(&new));
    assert!(!ground.settle(&new, Change::Complete).await, "a lease settles once");
});

on_every_table!(of_a_batch_only_the_live_leases_settle, |ground| {
    let (one, two, stale) = (ground.claimed().await.lease, ground.claimed().await.lease, ground.claimed().await.lease);
    let stale = Lease { claim_no: stale.claim_no + 1, ..stale };
    let unknown = Lease { event_id: uuid::Uuid::now_v7().into(), claim_no: 1 };
    let batch = [one.clone(), stale, unknown, two.clone()].map(|lease| settlement(lease, Change::Complete));
    let mut applied = ground.store.settle(&batch).await.unwrap();
    applied.sort();
    let mut expected = vec![one, two];
    expected.sort();
    assert_eq!(applied, expected);
    assert_eq!(ground.store.settle(&[]).await.unwrap(), []);
});

on_every_table!(hundreds_settle_at_once_each_in_its_own_way, |ground| {
    let events: Vec<NewEvent> = (0..500).map(|n| NewEvent::new(ground.kind, n.to_string())).collect();
    ground.store.enqueue(&events).await.unwrap();
    let claimed = ground.claim(500).await;
    let change = |n: usize| match n % 3 {
        0 => Change::Complete,
        1 => retry(60),
        _ => bury(),
    };
    let batch: Vec<_> =
        claimed.iter().enumerate().map(|(n, event)| settlement(event.lease.clone(), change(n))).collect();
    assert_eq!(ground.store.settle(&batch).await.unwrap().len(), 500);
    for (n, claimed) in claimed.iter().enumerate().step_by(50) {
        let expected = [Status::Completed, Status::Pending, Status::DeadLetter][n % 3];
        assert_eq!(ground.event(&claimed.lease.event_id).await.status, expected, "{n}");
    }
    let count = |label: &str| format!("SELECT count(*) FROM {{events}} WHERE {{status}} = {{{label}}}");
    assert_eq!(ground.sql.count(&count("completed")).await, 167);
    assert_eq!(ground.sql.count(&count("pending")).await, 167);
    assert_eq!(ground.sql.count(&count("dead_letter")).await, 166);
});

on_every_table!(extend_moves_the_end_of_a_live_lease, |ground| {
    let claimed = ground.claimed().await;
    let before = ground.event(&claimed.lease.event_id).await.lease_until.unwrap();
    let longer = ground.store.extend(&claimed.lease, Duration::from_mins(10)).await.unwrap().unwrap();
    assert_eq!(longer.event_id, claimed.lease.event_id);
    assert!(if ground.counts_claims { longer == claimed.lease } else { longer.claim_no > claimed.lease.claim_no });
    let after = ground.event(&claimed.lease.event_id).await.lease_until.unwrap();
    let moved = after.as_micros() - before.as_micros();
    assert!((539_000_000..600_000_000).contains(&moved), "{moved}");
    let shorter = ground.store.extend(&longer, Duration::from_secs(1)).await.unwrap().unwrap();
    assert!(shorter.claim_no >= longer.claim_no, "what is later never looks earlier");
    assert!(ground.settle(&shorter, Change::Complete).await);
    assert!(ground.store.extend(&shorter, LEASE).await.unwrap().is_none());
});

on_every_table!(hostile_text_is_kept_as_it_is, |ground| {
    for text in ["'; DROP TABLE x; --", "\"$1\" ?1 {now} \\", "é漢🦀\u{202e}\u{7f}", &"🦀".repeat(500), "\t\r\n"]
    {
        let lease = ground.claimed().await.lease;
        assert!(ground.settle(&lease, Change::DeadLetter { spends_attempt: true, error: text.to_owned() }).await);
        assert_eq!(ground.event(&lease.event_id).await.last_error.as_deref(), Some(text));
    }
});
