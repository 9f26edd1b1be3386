//! With the indexes that are advised, the hot statements stand on them, whatever the statistics say.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Row as _};

use super::AdoptedStore;
use crate::event::Status;
use crate::store::description::{Columns, Description, Instants, Labels, TableName};
use crate::store::sqlite::SqliteStore;
use crate::store::{Store as _, StoreOptions};

/// Statements that run all the time.
const HOT: [&str; 16] = [
    "bury_claimed",
    "cancel",
    "claim_by_id",
    "claim_lane",
    "discard",
    "event",
    "expired_types",
    "extend",
    "find_lanes",
    "front",
    "is_due",
    "reap",
    "reap_by_id",
    "requeue",
    "settle",
    "unreadable",
];

const TABLE: &str = "CREATE TABLE app (
    id TEXT NOT NULL PRIMARY KEY, type TEXT NOT NULL, payload TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL,
    available TEXT NOT NULL, locked TEXT, created TEXT NOT NULL);";

fn description(instants: Instants) -> Description {
    let name = str::to_owned;
    let columns = Columns {
        id: name("id"),
        event_type: Some(name("type")),
        payload: name("payload"),
        status: name("status"),
        attempts: name("attempts"),
        available_at: name("available"),
        locked_at: name("locked"),
        created_at: name("created"),
        processed_at: None,
        last_error: None,
        max_attempts: None,
        subject: None,
        headers: None,
        claim_no: None,
    };
    let labels = Labels {
        pending: name("pending"),
        processing: name("processing"),
        completed: name("completed"),
        dead_letter: name("dead"),
        skipped: None,
    };
    Description {
        name: name("app"),
        table: TableName { schema: None, table: name("app") },
        columns,
        labels,
        fixed_type: None,
        order_by: None,
        max_attempts: 10,
        time_zone: name("UTC"),
        instants: Some(instants),
        lease: Duration::from_secs(60),
        processed_at_on: BTreeSet::from([Status::Completed]),
        filter: None,
    }
}

/// The steps of hot statements that read the table without searching it or sort what they find.
async fn scans(instants: Instants, indexes: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("outbox.db").display());
    let options = StoreOptions::new(url);
    let home = SqliteStore::open(&options).await.unwrap();
    home.migrate().await.unwrap();
    let table = if instants.is_number() {
        TABLE.replace("available TEXT", "available INTEGER").replace("locked TEXT", "locked INTEGER")
    } else {
        TABLE.to_owned()
    };
    sqlx::raw_sql(AssertSqlSafe(format!("{table}{indexes}"))).execute(&home.reader).await.unwrap();
    let store = AdoptedStore::connect(&options, description(instants), Arc::new(home.clone())).await.unwrap();
    let mut found = Vec::new();
    for (name, sql) in store.statements().await.unwrap().texts() {
        if !HOT.contains(&name) {
            continue;
        }
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        for step in sqlx::query(AssertSqlSafe(explain)).fetch_all(&home.reader).await.unwrap() {
            let detail: String = step.get("detail");
            if detail.starts_with("SCAN app") || (detail.contains("TEMP B-TREE FOR ORDER BY") && name != "reap") {
                found.push(format!("{name}: {detail}"));
            }
        }
    }
    found
}

const ADVISED: &str = "
    CREATE INDEX app_claims ON app (status, type, available, id);
    CREATE INDEX app_locked ON app (status, locked);";

#[tokio::test(flavor = "multi_thread")]
async fn with_the_advised_indexes_no_hot_statement_scans_or_sorts_the_table() {
    for instants in [Instants::Microseconds, Instants::Seconds, Instants::Text, Instants::Iso] {
        assert_eq!(scans(instants, ADVISED).await, Vec::<String>::new(), "{instants:?}");
        let analysed = format!(
            "{ADVISED} INSERT INTO app VALUES ('a', 'a', '1', 'pending', 0, 1, NULL, 1), ('b', 'b', '1', 'completed', 0, 1, NULL, 1);
             ANALYZE;"
        );
        assert_eq!(scans(instants, &analysed).await, Vec::<String>::new(), "{instants:?}, analysed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_index_the_table_is_scanned() {
    assert!(!scans(Instants::Text, "").await.is_empty());
}
