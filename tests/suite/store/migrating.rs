//! The schema: made once, whoever starts, and never used by a binary that does not know it.

use outboxd::store::StoreError;
use sqlx::SqlitePool;

use super::*;
use crate::support::database::TestDb;

/// Both databases without a schema.
async fn databases() -> [TestDb; 2] {
    [TestDb::empty_sqlite().await, TestDb::empty_postgres().await]
}

fn ledger(sql: &TestDb) -> &'static str {
    if sql.is_sqlite() { "outbox_migrations" } else { "outbox.schema_migrations" }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_schema_nothing_is_ready_and_every_call_says_so() {
    for sql in databases().await {
        let store = sql.store().await;
        assert!(matches!(store.ready().await, Err(StoreError::SchemaOutdated)));
        assert!(matches!(store.survey(None, 1).await, Err(StoreError::SchemaOutdated)));
        store.migrate().await.unwrap();
        store.ready().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_start_at_once_all_find_the_schema() {
    for sql in databases().await {
        let starting: Vec<_> = (0..6)
            .map(|_| {
                let sql = sql.clone();
                tokio::spawn(async move {
                    let store = sql.store().await;
                    store.migrate().await?;
                    store.ready().await
                })
            })
            .collect();
        for started in starting {
            started.await.unwrap().unwrap();
        }
    }
}

store_test!(migrating_again_changes_nothing, |store, sql| {
    let id = enqueue(&store, "a").await;
    store.migrate().await.unwrap();
    store.ready().await.unwrap();
    assert_eq!(event(&store, id).await.event_type, "a");
});

store_test!(a_schema_without_the_log_of_actions_is_upgraded_with_its_events, |store, sql| {
    let id = enqueue(&store, "a").await;
    sql.sql("DROP TABLE {actions}").await;
    assert_eq!(sql.sql(&format!("DELETE FROM {} WHERE version = 2", ledger(&sql))).await, 1);
    assert!(matches!(store.ready().await, Err(StoreError::SchemaOutdated)));
    store.migrate().await.unwrap();
    store.ready().await.unwrap();
    store.cancel(&id.into(), "x", &somebody()).await.unwrap();
    assert_eq!(store.actions(&id.into()).await.unwrap().len(), 1);
});

store_test!(a_newer_schema_is_refused, |store, sql| {
    let newer = format!(
        "INSERT INTO {0} (version, description, success, checksum, execution_time) \
         SELECT 999, description, success, checksum, execution_time FROM {0} WHERE version = 1",
        ledger(&sql)
    );
    sql.sql(&newer).await;
    assert!(matches!(store.ready().await, Err(StoreError::SchemaTooNew { version: 999 })));
    assert!(matches!(store.migrate().await, Err(StoreError::SchemaTooNew { version: 999 })));
});

store_test!(an_edited_migration_is_refused, |store, sql| {
    sql.sql(&format!("UPDATE {} SET checksum = '' WHERE version = 1", ledger(&sql))).await;
    assert!(matches!(store.ready().await, Err(StoreError::SchemaBroken { .. })));
    assert!(matches!(store.migrate().await, Err(StoreError::SchemaBroken { .. })));
});

#[tokio::test(flavor = "multi_thread")]
async fn after_close_every_call_is_unavailable() {
    for sql in databases().await {
        let store = sql.migrated().await;
        store.close().await;
        assert!(store.ready().await.unwrap_err().is_transient());
        assert!(store.survey(None, 1).await.unwrap_err().is_transient());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_directory_is_named_as_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/none/outbox.db", directory.path().display());
    let error = outboxd::store::sqlite::SqliteStore::open(&outboxd::store::StoreOptions::new(url)).await.unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_names_no_file_is_refused() {
    let urls = [
        "sqlite:",
        "sqlite://",
        "sqlite://?mode=rwc",
        "sqlite://?mode=memory",
        "sqlite::memory:",
        "sqlite://:memory:",
        "sqlite://:memory:?cache=private",
        "sqlite://%3Amemory%3A",
        "sqlite://outbox.db?mode=memory",
        "sqlite://file:outbox.db%3Fmode=memory",
        "sqlite://file:",
    ];
    for url in urls {
        let options = outboxd::store::StoreOptions::new(url);
        let error = outboxd::store::connect(&options).await.map(|_| ()).unwrap_err();
        assert!(matches!(error, outboxd::store::ConnectError::InvalidUrl { .. }), "{url}: {error:?}");
        assert!(error.to_string().contains("needs a file"), "{url}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_writer_is_waited_for_and_a_file_that_stays_locked_is_unavailable() {
    let mut sql = TestDb::empty_sqlite().await;
    let store = sql.migrated().await;
    sql.options.call_deadline = Duration::from_millis(200);
    let hurried = sql.store().await;
    let application = SqlitePool::connect(&sql.options.url).await.unwrap();
    let transaction = application.begin_with("BEGIN IMMEDIATE").await.unwrap();

    let error = hurried.enqueue(&[NewEvent::new("a", "1")]).await.unwrap_err();
    assert!(matches!(error, outboxd::store::EnqueueError::Store(StoreError::Unavailable { .. })), "{error:?}");
    let waiting = tokio::spawn(async move { store.enqueue(&[NewEvent::new("a", "1")]).await.map(|_| ()) });
    tokio::task::yield_now().await;
    transaction.commit().await.unwrap();
    waiting.await.unwrap().unwrap();
    hurried.enqueue(&[NewEvent::new("a", "1")]).await.unwrap();
}
