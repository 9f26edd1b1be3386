//! A schema from which somebody dropped something: the ledger is intact, yet nothing is ready, and the words say what is
//! missing. The parts are taken from the catalogue, so that none that a migration makes can be forgotten.

use outboxd::store::StoreError;
use sqlx::{AssertSqlSafe, PgPool, SqlitePool};

use super::*;
use crate::support::database::TestDb;

fn ledger(sql: &TestDb) -> &'static str {
    if sql.is_sqlite() { "outbox_migrations" } else { "outbox.schema_migrations" }
}

/// Both ways to hear of it name the parts and the way out.
async fn is_broken(store: &Arc<dyn Store>, named: &[&str]) {
    for refusal in [store.ready().await, store.migrate().await] {
        let error = refusal.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, StoreError::SchemaBroken { .. }), "{named:?}: {error:?}");
        assert!(named.iter().all(|part| text.contains(part)), "{named:?}: {text}");
        assert!(text.contains("backup") && text.contains("drop") && text.contains("outboxd migrate"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_part_that_is_gone_from_postgres_is_named() {
    let sql = TestDb::empty_postgres().await;
    let store = sql.migrated().await;
    let pool = PgPool::connect(&sql.options.url).await.unwrap();
    let parts = "SELECT CASE relkind WHEN 'i' THEN 'index' ELSE 'table' END, relname::text FROM pg_class
                 WHERE relnamespace = 'outbox'::regnamespace AND relkind IN ('r', 'i')
                   AND relname <> 'schema_migrations'
                   AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = pg_class.oid)
                 UNION ALL
                 SELECT 'function', proname::text FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace";
    let parts: Vec<(String, String)> = sqlx::query_as(parts).fetch_all(&pool).await.unwrap();
    assert!(parts.len() >= 17, "{parts:?}");
    for (kind, name) in parts {
        let run = |text: String| sqlx::raw_sql(AssertSqlSafe(text)).execute(&pool);
        run(format!("ALTER {kind} outbox.{name} RENAME TO elsewhere")).await.unwrap();
        is_broken(&store, &[&format!("{kind} outbox.{name}")]).await;
        run(format!("ALTER {kind} outbox.elsewhere RENAME TO {name}")).await.unwrap();
        store.ready().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_part_that_is_gone_from_sqlite_is_named() {
    let parts = "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'index', 'trigger', 'view')
                 AND name NOT LIKE 'sqlite_%' AND name <> 'outbox_migrations'";
    let mut number = 0;
    loop {
        let sql = TestDb::empty_sqlite().await;
        let store = sql.migrated().await;
        let pool = SqlitePool::connect(&sql.options.url).await.unwrap();
        let parts: Vec<(String, String)> = sqlx::query_as(parts).fetch_all(&pool).await.unwrap();
        let Some((kind, name)) = parts.get(number) else { break };
        sql.sql(&format!("DROP {kind} {name}")).await;
        is_broken(&store, &[&format!("{kind} {name}")]).await;
        number += 1;
    }
    assert!(number >= 11, "{number}");
}

store_test!(a_table_takes_its_indexes_along_and_all_are_named, |store, sql| {
    sql.sql("DROP TABLE {events}").await;
    let (table, index) =
        if sql.is_sqlite() { ("outbox_event", "outbox_event_live") } else { ("outbox.event", "outbox.event_live") };
    is_broken(&store, &[&format!("table {table}"), &format!("index {index}")]).await;
});

store_test!(a_key_of_claim_tokens_that_is_gone_is_named, |store, sql| {
    assert_eq!(sql.sql("DELETE FROM {secrets}").await, 1);
    is_broken(&store, &["claim_token"]).await;
});

store_test!(parts_without_a_ledger_are_not_made_again, |store, sql| {
    let id = enqueue(&store, "a").await;
    sql.sql(&format!("DROP TABLE {}", ledger(&sql))).await;
    assert!(matches!(store.ready().await, Err(StoreError::SchemaOutdated)));
    let error = store.migrate().await.unwrap_err();
    assert!(matches!(error, StoreError::SchemaBroken { .. }), "{error:?}");
    assert!(error.to_string().contains("migration 1 cannot be applied"), "{error}");
    assert!(matches!(store.ready().await, Err(StoreError::SchemaOutdated)), "nothing was written");
    assert_eq!(event(&store, id).await.id, id);
});
