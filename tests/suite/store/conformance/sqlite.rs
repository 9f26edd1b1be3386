//! The shapes on which the suite runs in a `SQLite` file: every way to keep ids, statuses and instants.

use std::collections::BTreeSet;
use std::time::Duration;

use outboxd::event::Status;
use outboxd::outcome::Change;
use outboxd::store::description::{Columns, Description, Instants, Labels, TableName};

use super::ground::{Ground, Shape};
use crate::store::LEASE;
use crate::support::database::TestDb;

/// Prisma: texts for ids, milliseconds under a declared type that leans to numbers.
const PRISMA: &str = r#"CREATE TABLE "DomainEvent" (
    "id" TEXT NOT NULL PRIMARY KEY, "type" TEXT NOT NULL, "payload" TEXT NOT NULL, "status" TEXT NOT NULL DEFAULT 'PENDING',
    "attempts" INTEGER NOT NULL DEFAULT 0, "correlationId" TEXT, "availableAt" DATETIME NOT NULL, "claimedAt" DATETIME,
    "occurredAt" DATETIME NOT NULL, "processedAt" DATETIME, "lastError" TEXT);
    CREATE INDEX "DomainEvent_status_type_availableAt_idx" ON "DomainEvent"("status", "type", "availableAt");"#;

/// By hand: numbers for ids and statuses, blobs for payloads, no index but the key's.
const NUMBERED: &str = "CREATE TABLE outbox (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL, state INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0, most INTEGER, due TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, locked TEXT,
    made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, ended TEXT, error TEXT);";

/// Drizzle's timestamp mode, STRICT and without row numbers.
const SECONDS: &str = "CREATE TABLE drizzle_event (
    id TEXT PRIMARY KEY, event_type TEXT NOT NULL, payload TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL,
    available_at INTEGER NOT NULL, locked_at INTEGER, created_at INTEGER NOT NULL, processed_at INTEGER, last_error TEXT,
    claim_no INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
    CREATE INDEX drizzle_event_due ON drizzle_event (event_type, available_at, id) WHERE status = 'pending';";

const ISO: &str = "CREATE TABLE webhook (
    id VARCHAR(40) PRIMARY KEY, body JSON NOT NULL, status VARCHAR(20) NOT NULL, attempts INT NOT NULL, due VARCHAR(30) NOT NULL,
    locked VARCHAR(30), made VARCHAR(30) NOT NULL, ended VARCHAR(30), error TEXT);
    CREATE INDEX webhook_due ON webhook (status, due);";

const MILLISECONDS_NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
const TEXT_NOW: &str = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
const ISO_NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

/// Names in the order of a description's columns: id, type, payload, status, attempts, due, lock, creation, end, error.
fn columns(names: [&str; 10]) -> Columns {
    let [id, event_type, payload, status, attempts, available_at, locked_at, created_at, processed_at, last_error] =
        names.map(str::to_owned);
    Columns {
        id,
        event_type: Some(event_type).filter(|name| !name.is_empty()),
        payload,
        status,
        attempts,
        available_at,
        locked_at,
        created_at,
        processed_at: Some(processed_at),
        last_error: Some(last_error),
        max_attempts: None,
        subject: None,
        headers: None,
        claim_no: None,
    }
}

fn description(table: &str, columns: Columns, labels: [&str; 5], instants: Option<Instants>) -> Description {
    let [pending, processing, completed, dead_letter, skipped] = labels.map(str::to_owned);
    let skipped = Some(skipped).filter(|label| !label.is_empty());
    Description {
        name: "adopted".to_owned(),
        table: TableName::parse(table).unwrap(),
        columns,
        labels: Labels { pending, processing, completed, dead_letter, skipped },
        fixed_type: None,
        order_by: None,
        max_attempts: 3,
        time_zone: "UTC".to_owned(),
        instants,
        lease: LEASE,
        processed_at_on: BTreeSet::from([Status::Completed, Status::DeadLetter, Status::Skipped]),
        filter: None,
    }
}

async fn ground(tables: &'static str, now: &str, instants: Instants, description: Description) -> Ground {
    let other_kind = description.fixed_type.is_none().then_some("other");
    let sql = TestDb::empty_sqlite().await.keeping(instants);
    Ground::standing_on(sql, now, Shape { tables, description, other_kind }, false).await
}

impl Ground {
    pub async fn prisma_on_sqlite() -> Self {
        let names = [
            "id",
            "type",
            "payload",
            "status",
            "attempts",
            "availableAt",
            "claimedAt",
            "occurredAt",
            "processedAt",
            "lastError",
        ];
        let columns = Columns { subject: Some("correlationId".to_owned()), ..columns(names) };
        let labels = ["PENDING", "PROCESSING", "DONE", "FAILED", ""];
        let instants = Instants::Milliseconds;
        let description = description("\"DomainEvent\"", columns, labels, Some(instants));
        let description = Description { order_by: Some("occurredAt".to_owned()), ..description };
        ground(PRISMA, MILLISECONDS_NOW, instants, description).await
    }

    pub async fn numbered_on_sqlite() -> Self {
        let names = ["id", "kind", "body", "state", "tries", "due", "locked", "made", "ended", "error"];
        let columns = Columns { max_attempts: Some("most".to_owned()), ..columns(names) };
        let description = description("main.outbox", columns, ["0", "1", "2", "3", "4"], None);
        let mut ground = ground(NUMBERED, TEXT_NOW, Instants::Text, description).await;
        ground.takes_ids = false;
        ground
    }

    pub async fn seconds_on_sqlite() -> Self {
        Self::drizzle_on_sqlite(Some("claim_no".to_owned())).await
    }

    async fn drizzle_on_sqlite(claim_no: Option<String>) -> Self {
        let names = [
            "id",
            "event_type",
            "payload",
            "status",
            "attempts",
            "available_at",
            "locked_at",
            "created_at",
            "processed_at",
            "last_error",
        ];
        let columns = Columns { claim_no, ..columns(names) };
        let labels = ["pending", "processing", "completed", "dead", "skipped"];
        let description = description("drizzle_event", columns, labels, Some(Instants::Seconds));
        ground(SECONDS, "unixepoch()", Instants::Seconds, description).await
    }

    pub async fn iso_on_sqlite() -> Self {
        let names = ["id", "", "body", "status", "attempts", "due", "locked", "made", "ended", "error"];
        let labels = ["new", "busy", "done", "dead", ""];
        let description = description("webhook", columns(names), labels, Some(Instants::Iso));
        let description = Description { fixed_type: Some("mail.sent".to_owned()), ..description };
        ground(ISO, ISO_NOW, Instants::Iso, description).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_whole_seconds_alone_the_next_claim_differs_from_the_last() {
    let ground = Ground::drizzle_on_sqlite(None).await;
    let first = ground.claimed().await;
    let id = first.lease.event_id.clone();
    let change = Change::Retry { delay: Duration::ZERO, after_lease: false, error: "again".to_owned() };
    assert!(ground.settle(&first.lease, change).await);
    // Due again within two units of the column.
    let second = loop {
        if let Some(claimed) = ground.claim_by_id(&id).await {
            break claimed;
        }
    };
    assert!(second.lease.claim_no > first.lease.claim_no, "{second:?} after {first:?}");
    assert!(!ground.settle(&first.lease, Change::Complete).await, "a lease settles once");
    assert!(ground.settle(&second.lease, Change::Complete).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_claim_that_its_poller_left_behind_is_told_apart() {
    let ground = Ground::drizzle_on_sqlite(None).await;
    let id = ground.enqueue().await;
    let now = ground.ago(0);
    ground.sql.sql(&format!("UPDATE {{events}} SET {{locked_at}} = {now} + 1 WHERE {{id}} = '{id}'")).await;
    let former = ground.event(&id).await.claim_no;
    let claimed = ground.claim_by_id(&id).await.unwrap();
    assert!(claimed.lease.claim_no > former);
}
