//! Claims, surveys and peeks: the order of a lane, its limits, and that nobody gets what another has.

use std::collections::HashSet;

use outboxd::event::Due;
use outboxd::outcome::Change;
use outboxd::store::{Position, SubjectClaim};
use outboxd::timestamp::Timestamp;

use super::*;

fn at(event_type: &str, micros: i64) -> NewEvent {
    NewEvent { due: Due::At(Timestamp::from_micros(micros)), ..NewEvent::new(event_type, "1") }
}

fn ids(events: &[ClaimedEvent]) -> HashSet<Uuid> {
    events.iter().map(|event| event.lease.event_id.uuid().unwrap()).collect()
}

store_test!(a_lane_is_claimed_in_the_order_of_due_times, |store, sql| {
    let late = enqueue_as(&store, at("a", 3_000_000)).await;
    let early = enqueue_as(&store, at("a", 1_000_000)).await;
    let middle = enqueue_as(&store, at("a", 2_000_000)).await;
    for expected in [early, middle, late] {
        assert_eq!(ids(&claim(&store, "a", 1).await), HashSet::from([expected]));
    }
    assert_eq!(claim(&store, "a", 1).await, []);
});

store_test!(a_claim_returns_what_a_handler_needs, |store, sql| {
    let mut new = NewEvent::new("a", r#"{"b": 1.0, "b": 12345678901234567890}"#);
    new.subject = Some("invoice/42".to_owned());
    new.headers.insert("traceparent".to_owned(), "00-1".to_owned());
    new.max_attempts = 3;
    let id = enqueue_as(&store, new.clone()).await;
    let claimed = claim(&store, "a", 1).await.pop().unwrap();
    let stored = event(&store, id).await;
    assert_eq!(claimed.lease, Lease { event_id: id.into(), claim_no: 1 });
    assert_eq!(
        (claimed.payload.as_deref(), claimed.payload_bytes),
        (Some(new.payload.as_str()), i64::try_from(new.payload.len()).unwrap())
    );
    assert_eq!((claimed.subject, claimed.headers), (new.subject, new.headers));
    assert_eq!((claimed.attempts, claimed.max_attempts, claimed.deferred_for), (0, 3, None));
    assert_eq!((claimed.created_at, claimed.available_at), (stored.created_at, stored.available_at));
    assert_eq!(between(stored.locked_at.unwrap(), stored.lease_until.unwrap()), 60_000_000);
});

store_test!(each_lane_has_its_own_limit_and_no_other_lane_is_touched, |store, sql| {
    for event_type in ["a", "a", "a", "b", "b", "b", "c"] {
        enqueue(&store, event_type).await;
    }
    let wanted = Claim { lanes: vec![lane("a", 2), lane("b", 1), lane("none", 5)], subject: None };
    let mut types: Vec<String> =
        store.claim(&wanted).await.unwrap().into_iter().map(|claimed| claimed.event_type).collect();
    types.sort();
    assert_eq!(types, ["a", "a", "b"]);
});

store_test!(a_position_skips_what_lies_before_it, |store, sql| {
    let first = enqueue_as(&store, at("a", 1_000_000)).await;
    let second = enqueue_as(&store, at("a", 2_000_000)).await;
    let from = Some(Position { available_at: Timestamp::from_micros(2_000_000), id: second.into() });
    let from_second = Claim { lanes: vec![LaneClaim { from, ..lane("a", 9) }], subject: None };
    assert_eq!(ids(&store.claim(&from_second).await.unwrap()), HashSet::from([second]));
    assert_eq!(ids(&claim(&store, "a", 9).await), HashSet::from([first]), "the sweep finds it");
});

store_test!(what_is_not_due_stays, |store, sql| {
    let id = enqueue_as(&store, NewEvent { due: Due::AfterMs(60_000), ..NewEvent::new("a", "1") }).await;
    assert_eq!(claim(&store, "a", 9).await, []);
    assert!(store.claim_by_id(&id.into(), LEASE).await.unwrap().is_none());
    sql.make_due(id).await;
    assert_eq!(claim(&store, "a", 9).await.len(), 1);
});

store_test!(a_subject_is_claimed_over_all_its_lanes_with_one_limit, |store, sql| {
    for (event_type, subject) in [("a", "x"), ("b", "x"), ("b", "x"), ("c", "x"), ("a", "y")] {
        enqueue_as(&store, NewEvent { subject: Some(subject.to_owned()), ..NewEvent::new(event_type, "1") }).await;
    }
    let confined = |limit| Claim {
        lanes: vec![lane("a", 9), LaneClaim { lease: LEASE * 2, ..lane("b", 9) }],
        subject: Some(SubjectClaim { subject: "x".to_owned(), limit }),
    };
    assert!(store.peek(&confined(1)).await.unwrap().claimable);
    let first = store.claim(&confined(2)).await.unwrap();
    let rest = store.claim(&confined(9)).await.unwrap();
    assert_eq!((first.len(), rest.len()), (2, 1));
    for claimed in first.iter().chain(&rest) {
        assert_eq!(claimed.subject.as_deref(), Some("x"));
        let event = event(&store, claimed.lease.event_id.uuid().unwrap()).await;
        let lease = between(event.locked_at.unwrap(), event.lease_until.unwrap());
        assert_eq!(lease, if claimed.event_type == "a" { 60_000_000 } else { 120_000_000 });
    }
    assert!(!store.peek(&confined(1)).await.unwrap().claimable);
});

store_test!(eight_claimers_share_the_backlog_without_a_duplicate, |store, sql| {
    let events: Vec<NewEvent> = (0..400).map(|n| NewEvent::new("a", n.to_string())).collect();
    store.enqueue(&events).await.unwrap();
    let claimers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let claimed = claim(&store, "a", 7).await;
                    if claimed.is_empty() {
                        return mine;
                    }
                    mine.extend(claimed.iter().map(|event| event.lease.event_id.clone()));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for claimer in claimers {
        all.extend(claimer.await.unwrap());
    }
    all.extend(ids(&claim(&store, "a", 400).await).into_iter().map(outboxd::event::EventId::from));
    assert_eq!((all.len(), all.iter().collect::<HashSet<_>>().len()), (400, 400));
});

store_test!(of_twenty_that_want_one_event_exactly_one_gets_it, |store, sql| {
    for _ in 0..10 {
        let id = enqueue(&store, "a").await;
        let racers: Vec<_> = (0..20)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { store.claim_by_id(&id.into(), LEASE).await.unwrap().is_some() })
            })
            .collect();
        let mut winners = 0;
        for racer in racers {
            winners += u32::from(racer.await.unwrap());
        }
        assert_eq!(winners, 1);
    }
});

store_test!(a_payload_beyond_the_limit_is_not_read, |store, sql| {
    let mut small = sql.clone();
    small.options.max_payload_bytes = 10;
    let small = small.store().await;
    let fits = enqueue_as(&store, NewEvent::new("a", "\"12345678\"")).await;
    let exceeds = enqueue_as(&store, NewEvent::new("a", "\"1234567é\"")).await;
    for claimed in claim(&small, "a", 2).await {
        let expected = if claimed.lease.event_id == fits { (true, 10) } else { (false, 11) };
        assert_eq!((claimed.payload.is_some(), claimed.payload_bytes), expected);
    }
    assert!(small.event(&fits.into(), true).await.unwrap().unwrap().payload.is_some());
    assert!(small.event(&exceeds.into(), true).await.unwrap().unwrap().payload.is_none());
});

store_test!(an_odd_row_fails_alone, |store, sql| {
    enqueue(&store, "a").await;
    sql.sql(r#"INSERT INTO {events} ({event_type}, {payload}, {headers}) VALUES ('a', '1', '{"x": 1, "y": "z"}')"#)
        .await;
    enqueue(&store, "a").await;
    let claimed = claim(&store, "a", 9).await;
    assert_eq!(claimed.len(), 3);
    let refused = claimed.iter().filter(|event| outboxd::event::check_event_headers(&event.headers).is_err()).count();
    assert_eq!(refused, 1);
});

store_test!(the_survey_names_each_live_lane_once, |store, sql| {
    for _ in 0..3 {
        enqueue(&store, "b").await;
    }
    let claimed_front = claimed(&store, "a").await;
    let waiting = enqueue_as(&store, NewEvent { due: Due::AfterMs(60_000), ..NewEvent::new("c", "1") }).await;
    let done = claimed(&store, "d").await;
    assert!(settle(&store, done.lease, Change::Complete).await);

    let lanes = store.survey(None, 10).await.unwrap();
    assert_eq!(lanes.iter().map(|lane| lane.event_type.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(lanes[0].claimed_at_front && lanes[0].claimable.is_none() && lanes[0].next_due_at.is_none());
    assert!(!lanes[1].claimed_at_front && lanes[1].claimable.is_some());
    assert_eq!(lanes[2].claimable, None);
    assert_eq!(lanes[2].next_due_at, Some(event(&store, waiting).await.available_at));

    enqueue(&store, "a").await;
    let front = &store.survey(None, 1).await.unwrap()[0];
    assert!(front.claimed_at_front && front.claimable.is_some());
    let _ = claimed_front;
});

store_test!(a_survey_goes_on_where_the_last_one_stopped, |store, sql| {
    for number in 0..25 {
        enqueue(&store, &format!("type-{number:02}")).await;
    }
    let mut found = Vec::new();
    loop {
        let after = found.last().cloned();
        let lanes = store.survey(after.as_deref(), 10).await.unwrap();
        if lanes.is_empty() {
            break;
        }
        assert!(lanes.len() <= 10);
        found.extend(lanes.into_iter().map(|lane| lane.event_type));
    }
    assert_eq!(found, (0..25).map(|number| format!("type-{number:02}")).collect::<Vec<_>>());
});

store_test!(a_peek_changes_nothing, |store, sql| {
    let now = enqueue(&store, "a").await;
    let later = enqueue_as(&store, NewEvent { due: Due::AfterMs(60_000), ..NewEvent::new("b", "1") }).await;
    let both = Claim { lanes: vec![lane("a", 1), lane("b", 1)], subject: None };
    let peek = store.peek(&both).await.unwrap();
    assert_eq!((peek.claimable, peek.next_due_at), (true, Some(event(&store, later).await.available_at)));
    assert_eq!(event(&store, now).await.claim_no, 0);
    assert_eq!(claim(&store, "a", 1).await.len(), 1);
    assert!(!store.peek(&both).await.unwrap().claimable);
});

store_test!(a_lease_of_any_length_can_be_written, |store, sql| {
    let id = enqueue(&store, "a").await;
    let claimed = store.claim_by_id(&id.into(), Duration::MAX).await.unwrap().unwrap();
    assert!(store.extend(&claimed.lease, Duration::MAX).await.unwrap().is_some());
    assert_eq!(store.purge(Duration::MAX, Duration::MAX, 1).await.unwrap(), 0);
});
