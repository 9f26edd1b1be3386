//! A Postgres that goes away and comes back, under the real program: callers are told to come back, nothing delivered is
//! delivered again, and nobody has to restart anything.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use futures_util::FutureExt;
use outboxd::processor::RunError;
use outboxd::store::{EnqueueError, StoreError};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::service::Service;
use super::*;
use crate::support::postgres::Server;
use crate::support::receiver::Reply;

/// The server, the program on it, and a second way to its database.
async fn start(receiver: &Receiver, timeout: &str) -> (Server, Service, Arc<dyn Store>) {
    let server = Server::start().await;
    let service = Service::start(server.url(), receiver, timeout, "").await;
    let store = outboxd::store::connect(&outboxd::store::StoreOptions::new(server.url())).await.unwrap();
    (server, service, store)
}

async fn until_ready(service: &Service) {
    let began = Instant::now();
    while service.call("GET", "/readyz").await.status != 200 {
        assert!(began.elapsed() < PATIENCE, "it does not become ready again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn enqueue(store: &Arc<dyn Store>, count: usize) {
    store.enqueue(&vec![NewEvent::new("a", "1"); count]).await.unwrap();
}

/// Every way to work ends with the advice to come back, soon enough for any caller to hear it.
async fn refuses_everything(service: &Service) {
    let began = Instant::now();
    let calls = [
        ("POST", "/v1/process"),
        ("GET", "/v1/process"),
        ("POST", "/v1/process?mode=async"),
        ("GET", "/readyz"),
        ("POST", "/v1/dead-letters/0197a0c2-7b1e-7c3a-9f00-0242ac120002/requeue"),
    ];
    let answers = calls.iter().map(|(method, path)| service.call(method, path));
    for (answer, call) in futures_util::future::join_all(answers).await.iter().zip(&calls) {
        assert_eq!((answer.status, &answer.body["code"]), (503, &"database-unavailable".into()), "{call:?} {answer:?}");
        assert!(answer.head.contains("\r\nretry-after: "), "{call:?} {answer:?}");
        assert!(answer.body["partial"].is_null(), "{call:?} {answer:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_takes_no_writes_is_a_503_until_it_does() {
    let receiver = Receiver::start().await;
    let (server, service, store) = start(&receiver, "20s").await;
    enqueue(&store, 3).await;
    let set = async |value: &str| {
        let mut connection = PgConnection::connect(server.url()).await.unwrap();
        let sql = format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        sqlx::raw_sql("SELECT pg_reload_conf()").execute(&mut connection).await.unwrap();
    };
    set("on").await;
    let began = Instant::now();
    while service.call("GET", "/readyz").await.status != 503 {
        assert!(began.elapsed() < PATIENCE, "it does not notice");
    }
    refuses_everything(&service).await;
    assert!(receiver.received().is_empty());
    set("off").await;
    until_ready(&service).await;
    assert_eq!(service.run().await["completed"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_is_down_is_a_503_until_it_is_back() {
    let receiver = Receiver::start().await;
    let (mut server, service, store) = start(&receiver, "20s").await;
    enqueue(&store, 1).await;
    assert_eq!(service.run().await["completed"], 1);
    enqueue(&store, 3).await;
    server.stop();

    refuses_everything(&service).await;
    assert_eq!(service.call("GET", "/livez").await.status, 200);

    server.start_again();
    until_ready(&service).await;
    assert_eq!(service.run().await["completed"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_who_enqueue_one_after_the_other_hear_soon_of_a_database_that_is_down() {
    let receiver = Receiver::start().await;
    let (mut server, service, store) = start(&receiver, "20s").await;
    enqueue(&store, 1).await;
    server.stop();
    let event = [NewEvent::new("a", "1")];
    // Those who come while the first of them waits for a connection do not wait for one again and again.
    let calls = (0..60).map(|number| {
        let (store, event) = (&store, &event);
        async move {
            tokio::time::sleep(Duration::from_millis(number * 50)).await;
            let began = Instant::now();
            let error = store.enqueue(event).await.unwrap_err();
            assert!(matches!(&error, EnqueueError::Store(StoreError::Unavailable { .. })), "{error:?}");
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        }
    });
    futures_util::future::join_all(calls).await;
    server.start_again();
    until_ready(&service).await;
    let began = Instant::now();
    while let Err(error) = store.enqueue(&event).await {
        assert!(began.elapsed() < PATIENCE, "it does not recover: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_delivered_while_the_database_blinked_is_settled_and_not_repeated() {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let (mut server, service, store) = start(&receiver, "20s").await;
    enqueue(&store, 30).await;
    let run = service.begin_run(60_000);
    receiver.wait_for(30).await;
    server.stop();
    receiver.release_all();
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.start_again();
    let answer = run.await.unwrap();
    // Whether the run itself met the outage is a matter of chance.
    let report = if answer.status == 200 { &answer.body } else { &answer.body["partial"] };
    assert!(answer.status == 200 || answer.status == 503, "{answer:?}");
    assert_eq!((&report["claimed"], &report["completed"]), (&30.into(), &30.into()), "{answer:?}");
    until_ready(&service).await;
    let after = service.run().await;
    assert_eq!((&after["claimed"], &after["reaped"]), (&0.into(), &0.into()), "{after}");
    assert_eq!(receiver.received().len(), 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_lost_during_a_run_is_a_503_with_what_was_done() {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::status(200).held());
    let (mut server, service, store) = start(&receiver, "1s").await;
    receiver.then(Reply::status(200));
    enqueue(&store, 5).await;
    let began = Instant::now();
    let run = service.begin_run(2_500);
    receiver.wait_for(5).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.stop();
    receiver.release_all();
    let answer = run.await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(3_500), "the budget was 2.5 s: {:?}", began.elapsed());
    assert_eq!((answer.status, &answer.body["code"]), (503, &"database-unavailable".into()), "{answer:?}");
    assert!(answer.head.contains("\r\nretry-after: "));
    let partial = &answer.body["partial"];
    assert_eq!((&partial["claimed"], &partial["completed"]), (&5.into(), &1.into()), "{answer:?}");
    assert_eq!(partial["stop_reason"], "error");
    server.start_again();
    until_ready(&service).await;
    // What the run could not wait for is written once the database is back, and nothing is delivered again.
    let sql = sqlx::PgPool::connect(server.url()).await.unwrap();
    let count = "SELECT count(*) FROM outbox.event WHERE status = 'completed'";
    while sqlx::query_scalar::<_, i64>(count).fetch_one(&sql).await.unwrap() < 5 {
        assert!(began.elapsed() < Duration::from_secs(40), "settlements were given up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(receiver.received().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_are_cut_at_random_moments_cost_neither_an_event_nor_a_second_delivery() {
    let world = World::on(TestDb::empty_postgres().await).await;
    let seen: Arc<Mutex<HashMap<Uuid, usize>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let handler = Do(move |event: ClaimedEvent| {
        *noted.lock().unwrap().entry(event.lease.event_id.uuid().unwrap()).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(3)).map(|()| Outcome::Complete).boxed()
    });
    let processor = world.processor(vec![route("*", LONG, handler)]);
    world.enqueue_many("a", 2_000).await;
    let cut = tokio::spawn({
        let sql = world.sql.clone();
        async move {
            let mut cut = 0;
            for _ in 0..60 {
                let others = "application_name = 'outboxd' AND datname = current_database()";
                let terminate = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}");
                cut += sql.count(&terminate).await;
                tokio::time::sleep(Duration::from_millis(fastrand::u64(5..40))).await;
            }
            cut
        }
    });
    while !cut.is_finished() || world.count("pending").await > 0 {
        match processor.run(within(Duration::from_secs(60))).await {
            Ok(report) => assert_sums(&report),
            Err(error) => {
                assert!(matches!(&error, RunError::Store { source, .. } if source.is_transient()), "{error:?}");
            }
        }
    }
    assert!(cut.await.unwrap() > 100, "hardly a session was cut");
    // What is left was claimed by statements whose answers were lost.
    let past = world.sql.ago(Duration::from_secs(1));
    world.sql.sql(&format!("UPDATE {{events}} SET {{lease_until}} = {past} WHERE {{status}} = 'processing'")).await;
    run(&processor).await;
    assert_eq!(world.count("completed").await, 2_000);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2_000);
    assert!(seen.values().all(|count| *count == 1), "delivered again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_program_whose_database_is_away_still_stops_in_time() {
    let receiver = Receiver::start().await;
    receiver.set_default(Reply::silence());
    let (mut server, service, store) = start(&receiver, "20s").await;
    enqueue(&store, 2).await;
    let run = service.begin_run(60_000);
    receiver.wait_for(2).await;
    server.stop();
    let asked = Instant::now();
    service.running.ask_to_stop();
    let answer = run.await.unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    let status = tokio::task::spawn_blocking(move || service.running.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
}
