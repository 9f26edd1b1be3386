//! A Postgres that restarts, or ends sessions: connections that died in the pool are found out by the first caller that
//! meets one, not by one caller each. A step is run again only if it cannot have written twice.

use super::*;
use crate::support::database::TestDb;
use crate::support::postgres::Server;
use outboxd::store::{StoreError, StoreOptions};

/// Fills the pool: so many calls at once need a connection each.
async fn fill_pool(store: &Arc<dyn Store>, connections: u32) {
    let calls = (0..connections * 4).map(|_| store.survey(None, 10));
    for answer in futures_util::future::join_all(calls).await {
        answer.unwrap();
    }
}

async fn store_on(url: &str) -> (Arc<dyn Store>, u32) {
    let options = StoreOptions::new(url);
    let store = outboxd::store::connect(&options).await.unwrap();
    store.migrate().await.unwrap();
    (store, options.max_connections)
}

async fn write_one(store: &Arc<dyn Store>) -> Result<(), outboxd::store::EnqueueError> {
    store.enqueue(&[NewEvent::new("a", "1")]).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_quick_restart_no_read_fails() {
    let mut server = Server::start().await;
    let (store, connections) = store_on(server.url()).await;
    let id = enqueue(&store, "a").await;
    fill_pool(&store, connections).await;
    server.stop();
    server.start_again();

    let id = outboxd::event::EventId::from(id);
    let reads = (0..connections * 2).map(|_| store.event(&id, true));
    for read in futures_util::future::join_all(reads).await {
        assert_eq!(read.unwrap().unwrap().id, id);
    }
    store.ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_quick_restart_at_most_one_write_fails() {
    let mut server = Server::start().await;
    let (store, connections) = store_on(server.url()).await;
    fill_pool(&store, connections).await;
    server.stop();
    server.start_again();

    let mut failed = 0;
    for _ in 0..connections * 2 {
        if let Err(error) = write_one(&store).await {
            let outboxd::store::EnqueueError::Store(error) = error else { panic!("{error:?}") };
            assert!(error.is_transient(), "{error:?}");
            failed += 1;
        }
    }
    assert!(failed <= 1, "{failed} writes failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_the_server_ends_cost_no_call_an_error_and_no_write_is_doubled() {
    let sql = TestDb::empty_postgres().await;
    let store = sql.migrated().await;
    for round in 1..=5 {
        fill_pool(&store, sql.options.max_connections).await;
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE application_name = 'outboxd' AND datname = current_database()";
        assert!(sql.count(cut).await > 1);
        let all_at_once = (0..sql.options.max_connections).map(|_| write_one(&store));
        for write in futures_util::future::join_all(all_at_once).await {
            write.unwrap();
        }
        store.survey(None, 10).await.unwrap();
        let written = sql.count("SELECT count(*) FROM {events}").await;
        assert_eq!(written, i64::from(round * sql.options.max_connections));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_told_of_in_time() {
    let mut server = Server::start().await;
    let (store, connections) = store_on(server.url()).await;
    fill_pool(&store, connections).await;
    server.stop();
    let began = std::time::Instant::now();
    assert!(matches!(store.survey(None, 1).await, Err(StoreError::Unavailable { .. })));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}
