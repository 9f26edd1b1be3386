//! Rows that a plain INSERT brought in and that can never be delivered: each fails alone.

use super::*;

/// Inserts a row with these columns beside type and payload.
async fn insert(world: &World, id: Uuid, payload: &str, columns: &str, values: &str) {
    let (columns, values) = if columns.is_empty() {
        (String::new(), String::new())
    } else {
        (format!(", {columns}"), format!(", {values}"))
    };
    let sql = format!(
        "INSERT INTO {{events}} ({{id}}, {{event_type}}, {{payload}}{columns}) VALUES ('{id}', 'a', '{payload}'{values})"
    );
    world.sql.sql(&sql).await;
}

engine_test!(poisoned_rows_fail_alone_and_their_neighbours_are_delivered, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    world.enqueue_many("a", 5).await;
    let large = format!("\"{}\"", "x".repeat(300_000));
    let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
    let poison = [
        (large.as_str(), "", "at most 262144 are delivered"),
        (deep.as_str(), "", "deeper than 128 levels"),
        ("1", r#"{"Host":"evil"}"#, "host"),
        ("1", r#"{"x-a":"b\r\nc: d"}"#, "x-a"),
        ("1", r#"{"x-a":7}"#, "header"),
        ("1", r#"{"x-a":{"b":[null]}}"#, "header"),
        ("1", r#"{"webhook-id":"x"}"#, "webhook-id"),
    ];
    let mut ids = Vec::new();
    for (payload, headers, _) in poison {
        let id = Uuid::now_v7();
        let (column, value) =
            if headers.is_empty() { ("", String::new()) } else { ("{headers}", format!("'{headers}'")) };
        insert(&world, id, payload, column, &value).await;
        ids.push(id);
    }
    world.enqueue_many("a", 5).await;

    let report = run(&processor).await;

    assert_eq!((report.claimed, report.completed, report.dead_lettered), (17, 10, 7), "{report:?}");
    assert_eq!(receiver.received().len(), 10);
    for (id, (_, headers, words)) in ids.iter().zip(poison) {
        let event = world.event(*id).await;
        let error = event.last_error.clone().unwrap_or_default();
        assert_eq!((event.status.as_str(), event.attempts), ("dead_letter", 1), "{headers}: {event:?}");
        assert!(error.to_lowercase().contains(words), "{words}: {error}");
        assert!(!error.contains("xxxx"), "payloads are not repeated: {error}");
        assert!(report.dead_letter_ids.contains(&(*id).into()));
    }
});

engine_test!(what_a_store_was_told_not_to_read_is_called_too_large, |world| {
    let mut small = world.sql.clone();
    small.options.max_payload_bytes = 10;
    let registry = Registry::new(vec![route("*", LONG, outboxd::handler::Discard)]).unwrap();
    let processor = Processor::new(small.store().await, registry, ProcessorSettings::default()).unwrap();
    let id = world.enqueue_as(NewEvent::new("a", r#""123456789""#)).await;
    assert_eq!(run(&processor).await.dead_lettered, 1);
    let error = world.event(id).await.last_error;
    assert_eq!(error.as_deref(), Some("the payload has 11 bytes; at most 10 are delivered"));
});

engine_test!(a_row_with_absurd_numbers_is_refused_or_does_not_hold_up_the_others, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    world.enqueue_many("a", 3).await;
    let far = if world.sql.is_sqlite() { i64::MAX.to_string() } else { "'200000-01-01'".to_owned() };
    let ancient = if world.sql.is_sqlite() { i64::MIN.to_string() } else { "'4700-01-01 BC'".to_owned() };
    let absurd = [
        ("attempts", i32::MAX.to_string()),
        ("claim_no", i64::MAX.to_string()),
        ("requeues", i32::MAX.to_string()),
        ("created_at", far.clone()),
        ("created_at", ancient.clone()),
        ("deferred_since", far.clone()),
        ("deferred_since", ancient),
        ("locked_at", far),
    ];
    for (column, value) in absurd {
        let column = format!("{{{column}}}");
        let sql = format!("INSERT INTO {{events}} ({{event_type}}, {{payload}}, {column}) VALUES ('a', '1', {value})");
        // A refusal is as good as a delivery.
        drop(world.sql.try_sql(&sql).await);
    }
    world.enqueue_many("a", 3).await;
    receiver.then(crate::support::receiver::Reply::status(500));
    for _ in 0..3 {
        let report = run(&processor).await;
        assert_eq!(report.lease_lost, 0, "{report:?}");
    }
    assert_eq!(world.count("processing").await, 0);
    assert!(receiver.received().len() >= 6);
});

engine_test!(a_row_whose_counts_are_at_their_limits_does_not_hold_up_the_others, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let limits = [("claim_no", "1000000000000000"), ("attempts", "1000000"), ("requeues", "1000000000")];
    for (column, limit) in limits {
        insert(&world, Uuid::now_v7(), "1", &format!("{{{column}}}"), limit).await;
    }
    let expired = format!("1000000, 'processing', {}", world.sql.ago(Duration::from_secs(1)));
    insert(&world, Uuid::now_v7(), "1", "{attempts}, {status}, {lease_until}", &expired).await;
    world.enqueue_many("a", 3).await;
    receiver.set_default(crate::support::receiver::Reply::status(500));
    receiver.then(crate::support::receiver::Reply::status(200));

    let report = run(&processor).await;

    assert_eq!((report.claimed, report.reaped, report.lease_lost), (5, 1, 0), "{report:?}");
    assert_eq!((report.completed, report.completed + report.dead_lettered + report.retried), (1, 5), "{report:?}");
    assert_eq!(world.count("processing").await, 0);
});

/// Postgres refuses such text by itself.
#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_not_utf8_fails_alone_on_sqlite() {
    let world = World::on(TestDb::empty_sqlite().await).await;
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let bad = "CAST(x'22ff22' AS TEXT)";
    let insert = |columns: &str, values: &str| format!("INSERT INTO {{events}} ({columns}) VALUES ('a', {values})");
    world.sql.sql(&insert("{event_type}, {payload}", bad)).await;
    world.sql.sql(&insert("{event_type}, {payload}, {subject}", &format!("'1', {bad}"))).await;
    world.enqueue("a").await;
    let report = run(&processor).await;
    assert_eq!((report.completed, report.dead_lettered), (2, 1), "{report:?}");
    let dead = world.event(report.dead_letter_ids[0].uuid().unwrap()).await;
    assert_eq!(
        dead.last_error.as_deref(),
        Some("the payload cannot be read: it is missing, not UTF-8 text or no JSON")
    );
}
