//! The life of an event: delivered, tried again ever later, put off, skipped, given up, requeued.

use outboxd::event::Status;
use outboxd::run::StopReason;
use outboxd::store::{Actor, RequeueChange, Transition};

use super::*;
use crate::support::receiver::Reply;

engine_test!(an_event_is_delivered_once_and_the_run_says_so, |world| {
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue("a").await;

    let report = run(&processor).await;

    assert_eq!((report.claimed, report.completed, report.more), (1, 1, false), "{report:?}");
    assert_eq!((report.stop_reason, report.next_due_at), (Some(StopReason::Drained), None));
    assert_eq!(world.standing(id).await, ("completed", 0, 1));
    let [request] = receiver.received().try_into().unwrap();
    assert_eq!(request.header("webhook-id"), Some(id.to_string().as_str()));
    assert_eq!((request.header("outbox-attempt"), request.header("outbox-claim")), (Some("1"), Some("1")));
    assert!(world.store.attempts(&id.into()).await.unwrap().is_empty(), "only failures are logged");
    assert!(run(&processor).await.is_idle());
});

engine_test!(failures_wait_twice_as_long_each_time_and_end_as_a_dead_letter_that_can_be_requeued, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(500).body("no"));
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    let id = world.enqueue_as(NewEvent { max_attempts: 4, ..NewEvent::new("a", "{}") }).await;
    for failures in 1..=3_i32 {
        let before = now_micros();
        let report = run(&processor).await;
        let after = now_micros();
        assert_eq!((report.retried, report.more), (1, false), "{report:?}");
        let event = world.event(id).await;
        assert_eq!((event.status, event.attempts), (Status::Pending, failures));
        assert_eq!(event.last_error.as_deref(), Some("HTTP 500 Internal Server Error"));
        assert_eq!((event.locked_at, event.lease_until), (None, None));
        assert_eq!(report.next_due_at, Some(event.available_at));
        let wait = 1_000_000 * 2_i64.pow(failures.unsigned_abs());
        let due = event.available_at.as_micros();
        // SQLite's clock cuts off at the millisecond.
        assert!(due >= before - 1_000 + wait && due <= after + wait + wait / 10, "{failures}: {}", due - after);
        assert!(run(&processor).await.is_idle(), "it is not due");
        world.sql.make_due(id).await;
    }
    let report = run(&processor).await;
    assert_eq!(
        (report.dead_lettered, report.dead_letter_ids.as_slice()),
        (1, [outboxd::event::EventId::from(id)].as_slice()),
        "{report:?}"
    );
    let dead = world.event(id).await;
    assert_eq!((dead.status, dead.attempts), (Status::DeadLetter, 4));
    assert!(dead.dead_at.is_some() && dead.processed_at.is_some());
    let log = world.store.attempts(&id.into()).await.unwrap();
    let lines: Vec<(i32, i64, Option<i32>)> =
        log.iter().map(|line| (line.number, line.claim_no, line.status_code)).collect();
    assert_eq!(lines, [(1, 1, Some(500)), (2, 2, Some(500)), (3, 3, Some(500)), (4, 4, Some(500))]);
    assert!(log.iter().all(|line| line.outcome == "retry" && line.response.as_deref() == Some("no")), "{log:?}");

    receiver.set_default(Reply::status(200));
    let requeued = world.store.requeue(&id.into(), &RequeueChange::default(), &Actor::new("somebody")).await.unwrap();
    assert!(matches!(requeued, Transition::Applied(event) if event.attempts == 0 && event.requeues == 1));
    assert_eq!(run(&processor).await.completed, 1);
    assert_eq!(world.standing(id).await, ("completed", 0, 5));
    let ids: Vec<String> = receiver.received().iter().map(|one| one.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids, vec![id.to_string(); 5]);
});

engine_test!(every_kind_of_answer_leads_where_the_contract_says, |world| {
    let word = |status: u16, word: &str| Reply::status(status).header("Outbox-Outcome", word);
    let wait = |reply: Reply| reply.header("Retry-After", "30");
    // Answer, status, attempts, and the least and the most of seconds until it is due again.
    let table = [
        (Reply::status(204), "completed", 0, None),
        (wait(Reply::status(429)), "pending", 0, Some((30, 30))),
        (Reply::status(429), "pending", 0, Some((2, 3))),
        (wait(Reply::status(503)), "pending", 0, Some((30, 30))),
        (Reply::status(503), "pending", 1, Some((2, 3))),
        (wait(Reply::status(500)), "pending", 1, Some((30, 30))),
        (Reply::status(410), "skipped", 0, None),
        (Reply::redirect(302, "http://127.0.0.1:9/"), "pending", 1, Some((2, 3))),
        (Reply::status(422), "dead_letter", 1, None),
        (Reply::reset(), "pending", 1, Some((2, 3))),
        (word(500, "complete"), "completed", 0, None),
        (word(200, "retry"), "pending", 1, Some((2, 3))),
        (wait(word(200, "retry")), "pending", 1, Some((30, 30))),
        (wait(word(200, "defer")), "pending", 0, Some((30, 30))),
        (word(200, "skip"), "skipped", 0, None),
        (word(200, "dead_letter"), "dead_letter", 1, None),
        (word(500, "banana"), "pending", 1, Some((2, 3))),
    ];
    let receiver = Receiver::start().await;
    let processor = world.processor(vec![webhook("*", LONG, &receiver)]);
    for (reply, status, attempts, due) in table {
        let case = format!("{reply:?}");
        receiver.then(reply);
        let id = world.enqueue("a").await;
        let before = now_micros();
        let report = run(&processor).await;
        let after = now_micros();
        assert_eq!(report.claimed, 1, "{case}");
        let event = world.event(id).await;
        assert_eq!((event.status.as_str(), event.attempts), (status, attempts), "{case}");
        assert_eq!(event.processed_at.is_some(), event.status.is_terminal(), "{case}");
        if let Some((least, most)) = due {
            let at = event.available_at.as_micros();
            assert!(at >= before - 1_000 + least * 1_000_000 && at <= after + most * 1_000_000, "{case}: {event:?}");
        }
        let logged = world.store.attempts(&id.into()).await.unwrap().len();
        assert_eq!(logged, usize::from(status != "completed"), "{case}");
    }
});

engine_test!(a_time_out_is_an_attempt_and_waits_for_the_end_of_the_lease, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::silence());
    let processor = world.processor(vec![webhook("*", Duration::from_millis(200), &receiver)]);
    let id = world.enqueue("a").await;
    let before = now_micros();
    assert_eq!(run(&processor).await.retried, 1);
    let event = world.event(id).await;
    assert_eq!((event.status, event.attempts), (Status::Pending, 1));
    // The lease is the timeout and half a minute, and longer than the back-off.
    assert!(event.available_at.as_micros() >= before - 1_000 + 30_200_000, "{event:?}");
    assert_eq!(world.store.attempts(&id.into()).await.unwrap()[0].outcome, "timed_out");
});
