//! Lists of events, many dead letters at once, and who did it, on every table.

use std::collections::BTreeSet;
use std::time::Duration;

use outboxd::store::{
    ActionKind, Actor, BulkChange, BulkRequest, DeadLetterFilter, EventQuery, MAX_BULK, RequeueChange, Selection,
    change_many,
};

use super::*;

fn requeue(ground: &Ground) -> BulkRequest {
    let filter = DeadLetterFilter { types: vec![ground.kind.to_owned()], ..DeadLetterFilter::default() };
    BulkRequest {
        selection: Selection::Filter { filter, after: None },
        change: BulkChange::Requeue { spread: Duration::ZERO },
        limit: MAX_BULK,
        dry_run: false,
    }
}

on_every_table!(every_event_is_listed_once_in_either_order, |ground| {
    let mut ids = BTreeSet::new();
    for _ in 0..7 {
        ids.insert(ground.enqueue().await);
    }
    let dead = ground.dead_letter().await;
    ids.insert(dead.clone());
    let mut orders = Vec::new();
    for (rising, limit) in [(false, 3), (true, 3), (false, 200), (true, 1)] {
        let mut query = EventQuery { rising, limit, ..EventQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = ground.store.events(&query).await.unwrap();
            seen.extend(page.events.into_iter().map(|event| event.id));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), ids);
        assert_eq!(seen.len(), ids.len());
        if rising {
            seen.reverse();
        }
        orders.push(seen);
    }
    assert!(orders.iter().all(|order| *order == orders[0]));
    let query = EventQuery { statuses: vec![Status::DeadLetter], limit: 5, ..EventQuery::default() };
    let found = ground.store.events(&query).await.unwrap().events;
    assert_eq!(found.into_iter().map(|event| event.id).collect::<Vec<_>>(), [dead]);
});

on_every_table!(many_dead_letters_are_requeued_once_by_two_at_once, |ground| {
    let mut dead = BTreeSet::new();
    for _ in 0..12 {
        dead.insert(ground.dead_letter().await);
    }
    let pending = ground.enqueue().await;
    let (one, two) = (Actor::new("one"), Actor::new("two"));
    let request = requeue(&ground);
    let (first, second) = tokio::join!(
        change_many(ground.store.as_ref(), &request, &one),
        change_many(ground.other.as_ref(), &request, &two)
    );
    assert_eq!(first.unwrap().changed + second.unwrap().changed, 12);
    for id in &dead {
        let log = ground.store.actions(id).await.unwrap();
        assert_eq!(log.iter().map(|line| line.kind).collect::<Vec<_>>(), [ActionKind::Requeue]);
        let event = ground.event(id).await;
        assert_eq!((event.status, event.attempts, event.dead_at), (Status::Pending, 0, None));
    }
    assert_eq!(ground.store.actions(&pending).await.unwrap(), []);
    assert_eq!(ground.claim(100).await.len(), 13, "all are due");
});

on_every_table!(a_limit_leaves_the_rest_for_the_next_request, |ground| {
    for _ in 0..5 {
        ground.dead_letter().await;
    }
    let request = BulkRequest { limit: 3, ..requeue(&ground) };
    let dry = BulkRequest { dry_run: true, ..request.clone() };
    let counted = change_many(ground.store.as_ref(), &dry, &somebody()).await.unwrap();
    assert_eq!((counted.matched, counted.changed, counted.more), (3, 0, true));
    let first = change_many(ground.store.as_ref(), &request, &somebody()).await.unwrap();
    let second = change_many(ground.store.as_ref(), &request, &somebody()).await.unwrap();
    assert_eq!((first.changed, first.more, second.changed, second.more), (3, true, 2, false));
});

on_every_table!(filters_of_a_bulk_change_all_hold, |ground| {
    let dead = ground.dead_letter().await;
    let at = ground.event(&dead).await.dead_at.unwrap();
    let of = |change: fn(&mut DeadLetterFilter)| {
        let mut filter = DeadLetterFilter::default();
        change(&mut filter);
        filter
    };
    for (filter, matches) in [
        (of(|filter| filter.error_contains = Some("boom".to_owned())), true),
        (of(|filter| filter.error_contains = Some("bang".to_owned())), false),
        (of(|filter| filter.types = vec!["never".to_owned()]), false),
        (DeadLetterFilter { dead_after: Some(at), ..DeadLetterFilter::default() }, false),
        (DeadLetterFilter { dead_before: Some(at), ..DeadLetterFilter::default() }, false),
        (DeadLetterFilter { dead_after: Some(earlier(at)), ..DeadLetterFilter::default() }, true),
    ] {
        let found = ground.store.find_dead_letters(&filter, None, 10).await.unwrap();
        assert_eq!(!found.ids.is_empty(), matches, "{filter:?}");
    }
});

fn earlier(at: outboxd::timestamp::Timestamp) -> outboxd::timestamp::Timestamp {
    outboxd::timestamp::Timestamp::from_micros(at.as_micros() - 1_000_000)
}

on_every_table!(named_dead_letters_are_discarded_where_the_table_has_a_word_for_it, |ground| {
    let (dead, pending) = (ground.dead_letter().await, ground.enqueue().await);
    let strange = ground.store.parse_id("'; --");
    let ids = [dead.clone(), pending.clone()].into_iter().chain(strange).collect();
    let request = BulkRequest {
        selection: Selection::Ids(ids),
        change: BulkChange::Discard { reason: "useless".to_owned() },
        limit: 10,
        dry_run: false,
    };
    let by = Actor::new("alice").because(Some("test data"));
    let done = change_many(ground.store.as_ref(), &request, &by).await;
    assert_eq!(ground.store.abilities().await.unwrap().discard, ground.has_skipped);
    if !ground.has_skipped {
        assert!(done.is_err());
        assert_eq!(ground.event(&dead).await.status, Status::DeadLetter);
        return;
    }
    assert_eq!(done.unwrap().sample_ids, std::slice::from_ref(&dead));
    assert_eq!(ground.event(&dead).await.last_error.as_deref(), Some("useless"));
    let log = ground.store.actions(&dead).await.unwrap();
    assert_eq!((log[0].actor.as_str(), log[0].note.as_deref()), ("alice", Some("test data")));
    assert_eq!(ground.event(&pending).await.status, Status::Pending);
});

on_every_table!(a_limit_of_attempts_is_set_only_where_there_is_a_column, |ground| {
    let dead = ground.dead_letter().await;
    let change = RequeueChange { delay: Duration::ZERO, max_attempts: Some(7) };
    let done = ground.store.requeue(&dead, &change, &somebody()).await;
    if ground.store.abilities().await.unwrap().set_max_attempts {
        done.unwrap();
        assert_eq!(ground.event(&dead).await.max_attempts, 7);
    } else {
        assert!(done.is_err());
        assert_eq!(ground.event(&dead).await.status, Status::DeadLetter);
    }
});
