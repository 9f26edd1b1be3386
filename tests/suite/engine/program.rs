//! The real program: killed, asked to stop, left by its callers.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Instant;

use outboxd::event::Status;
use outboxd::lease::Lease;
use outboxd::outcome::{Change, Settlement};

use super::service::{Answer, Service};
use super::*;
use crate::support::receiver::Reply;

engine_test!(a_program_killed_in_mid_delivery_leaves_an_event_that_the_next_one_takes_back, |world| {
    let receiver = Receiver::start().await;
    receiver.then(Reply::status(200).held());
    let killed = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    let id = world.enqueue("a").await;
    let run = killed.begin_run(60_000);
    receiver.wait_for(1).await;
    killed.running.kill();
    run.await.unwrap_err();
    assert_eq!(world.standing(id).await, ("processing", 0, 1));

    let next = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    let report = next.run().await;
    assert_eq!((&report["claimed"], &report["reaped"]), (&0.into(), &0.into()), "its lease has not ended: {report}");
    world.sql.expire_lease(id).await;
    let report = next.run().await;
    assert_eq!((&report["completed"], &report["reaped"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(world.standing(id).await, ("completed", 1, 2));
    assert_eq!(world.event(id).await.last_error.as_deref(), Some("claim expired"));

    let [first, second] = receiver.received().try_into().unwrap();
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!((first.header("outbox-claim"), second.header("outbox-claim")), (Some("1"), Some("2")));
    let stale =
        Settlement { lease: Lease { event_id: id.into(), claim_no: 1 }, change: Change::Release, attempt: None };
    assert!(world.store.settle(&[stale]).await.unwrap().is_empty());
    assert_eq!(world.standing(id).await, ("completed", 1, 2));
});

engine_test!(a_program_that_is_asked_to_stop_finishes_what_it_can_within_the_grace, |world| {
    let receiver = Receiver::playing([Reply::status(200).held(), Reply::silence()]).await;
    let service = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    assert_eq!(service.call("GET", "/readyz").await.status, 200);
    world.enqueue_many("a", 2).await;
    let run = service.begin_run(60_000);
    receiver.wait_for(2).await;
    let asked = Instant::now();
    service.running.ask_to_stop();
    while service.call("GET", "/readyz").await.status != 503 {
        assert!(asked.elapsed() < PATIENCE);
    }
    let id = world.enqueue("late").await;
    for path in ["/v1/process".to_owned(), format!("/v1/events/{id}/process")] {
        let refused = service.call("POST", &path).await;
        assert_eq!((refused.status, &refused.body["code"]), (503, &"shutting-down".into()), "{refused:?}");
        assert!(refused.head.contains("\r\nretry-after: ") && refused.head.contains("\r\nconnection: close"));
    }
    assert_eq!(service.call("GET", "/livez").await.status, 200);
    receiver.release_all();

    let answer = run.await.unwrap();
    assert_eq!((answer.status, &answer.body["stop_reason"]), (200, &"shutdown".into()), "{answer:?}");
    assert_eq!((&answer.body["completed"], &answer.body["retried"]), (&1.into(), &1.into()), "{answer:?}");
    let status = tokio::task::spawn_blocking(move || service.running.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    // The grace is one second, and another is for settling and answering.
    assert!(asked.elapsed() < Duration::from_millis(2_500), "{:?}", asked.elapsed());

    assert_eq!((world.count("completed").await, world.count("processing").await), (1, 0));
    assert_eq!(world.standing(id).await, ("pending", 0, 0));
    // The one that was cut off waits for the end of its lease, which is far longer than its back-off.
    let soonest = world
        .sql
        .ago(Duration::ZERO)
        .replace(" - ", &format!(" + 45 * {} - ", world.sql.interval(Duration::from_secs(1))));
    let waiting = format!("SELECT count(*) FROM {{events}} WHERE {{attempts}} = 1 AND {{available_at}} > {soonest}");
    assert_eq!(world.sql.count(&waiting).await, 1);
});

engine_test!(a_program_that_is_asked_to_stop_answers_who_waits_for_an_event, |world| {
    let receiver = Receiver::playing([Reply::status(200).held()]).await;
    let service = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    let id = world.enqueue("a").await;
    let path = format!("/v1/events/{id}/process");
    let stop = async {
        receiver.wait_for(1).await;
        service.running.ask_to_stop();
        while service.call("GET", "/readyz").await.status != 503 {}
        receiver.release_all();
    };
    let (answer, ()) = tokio::join!(service.call("POST", &path), stop);
    assert_eq!((answer.status, &answer.body["outcome"]), (200, &"completed".into()), "{answer:?}");
    let status = tokio::task::spawn_blocking(move || service.running.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
});

engine_test!(a_client_that_closes_its_socket_stops_further_claims_but_no_delivery, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let service = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    world.enqueue_many("a", 200).await;
    let mut socket = TcpStream::connect(service.address).unwrap();
    write!(socket, "GET /v1/process?batch_size=200 HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let begun = receiver.wait_for(60).await.len();
    drop(socket);
    // The next call finds its slots free only when the run has heard of it.
    tokio::time::sleep(Duration::from_millis(200)).await;
    receiver.release_all();
    world.wait_for("completed", i64::try_from(begun).unwrap()).await;
    world.wait_for("processing", 0).await;
    assert_eq!(receiver.received().len(), begun);
    assert_eq!(world.count_spent().await, 0);
    assert_eq!(service.run().await["completed"], 200 - begun);
});

engine_test!(twenty_clients_at_once_cause_one_delivery, |world| {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).after(Duration::from_millis(200)));
    let service = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    let id = world.enqueue("a").await;
    let path = format!("/v1/events/{id}/process");
    let calls = (0..20).map(|_| service.call("POST", &path));
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let completed = answers.iter().filter(|answer| answer.body["outcome"] == "completed").count();
    assert!(completed >= 1);
    let legal = |answer: &Answer| ["completed", "processing"].iter().any(|word| answer.body["outcome"] == *word);
    assert!(answers.iter().all(legal), "{answers:?}");
    assert_eq!(receiver.received().len(), 1);
    let processing = service.call("POST", &path).await;
    assert_eq!(processing.body["outcome"], "completed");
    assert_eq!(world.event(id).await.status, Status::Completed);
});
