//! The yardstick: the same claim and settlement as bare SQL, as fast as a loop can send it.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, Row, SqliteConnection};
use uuid::Uuid;

const CLAIM: &str = "WITH picked AS MATERIALIZED (
    SELECT e.id FROM outbox.event e
    WHERE e.processed_at IS NULL AND e.event_type = $1 AND e.target = '' AND e.available_at <= now()
      AND (e.available_at, e.id) >= ($2, $3) AND e.status = 'pending'
    ORDER BY e.available_at, e.id LIMIT $4 FOR UPDATE SKIP LOCKED)
UPDATE outbox.event e
SET status = 'processing', locked_at = now(), lease_until = now() + interval '60 s', claim_no = e.claim_no + 1
WHERE e.id = ANY (ARRAY (SELECT id FROM picked)) AND e.status = 'pending'
RETURNING e.id, e.claim_no, e.available_at, e.payload::text";

const SETTLE: &str = "UPDATE outbox.event e
SET status = 'completed', processed_at = now(), locked_at = NULL, lease_until = NULL
WHERE e.id = ANY ($1::uuid[]) AND e.status = 'processing'
  AND e.claim_no = ($2::bigint[])[array_position($1::uuid[], e.id)]";

/// Two connections that claim and settle until nothing is left.
pub async fn postgres(url: &str, batch: i64, events: u64) -> Duration {
    let options: PgConnectOptions = url.parse().expect("a URL");
    let options = options.options([("jit", "off"), ("enable_seqscan", "off")]).disable_statement_logging();
    let began = Instant::now();
    let loops = [(); 2].map(|()| tokio::spawn(drain(options.clone(), batch)));
    let mut done = 0;
    for task in loops {
        done += task.await.expect("a loop ends");
    }
    assert_eq!(done, events, "the raw loop drains everything");
    began.elapsed()
}

async fn drain(options: PgConnectOptions, batch: i64) -> u64 {
    let mut connection = PgConnection::connect_with(&options).await.expect("Postgres answers");
    let mut done = 0;
    let mut from = (time::OffsetDateTime::UNIX_EPOCH, Uuid::nil());
    loop {
        let claim = sqlx::query(CLAIM).bind("bench.event").bind(from.0).bind(from.1).bind(batch);
        let rows = claim.fetch_all(&mut connection).await.expect("a claim");
        if rows.is_empty() {
            return done;
        }
        let mut leases: Vec<(Uuid, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        leases.sort_unstable();
        from = rows.iter().map(|row| (row.get(2), row.get(0))).max().expect("not empty");
        let (ids, claims): (Vec<Uuid>, Vec<i64>) = leases.into_iter().unzip();
        let settled = sqlx::query(SETTLE).bind(ids).bind(claims).execute(&mut connection).await.expect("a settlement");
        done += settled.rows_affected();
    }
}

const SQLITE_NOW: &str = "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000)";

/// One connection, as SQLite has one writer: two transactions a batch.
pub async fn sqlite(url: &str, batch: i64, events: u64) -> Duration {
    let claim = format!(
        "UPDATE outbox_event SET status = 'processing', locked_at = {SQLITE_NOW},
            lease_until = {SQLITE_NOW} + 60000000, claim_no = claim_no + 1
         WHERE id IN (SELECT id FROM outbox_event
            WHERE processed_at IS NULL AND event_type = ?1 AND target = '' AND available_at <= {SQLITE_NOW} + 1000000
              AND status = 'pending'
            ORDER BY available_at, id LIMIT ?2)
         RETURNING id, claim_no, payload"
    );
    let settle = format!(
        "UPDATE outbox_event SET status = 'completed', processed_at = {SQLITE_NOW}, locked_at = NULL, lease_until = NULL
         FROM json_each(?1) AS lease
         WHERE outbox_event.id = lease.value ->> 0 AND claim_no = lease.value ->> 1 AND status = 'processing'"
    );
    let mut connection = SqliteConnection::connect(url).await.expect("the file opens");
    sqlx::raw_sql("PRAGMA synchronous = FULL").execute(&mut connection).await.expect("a pragma");
    let began = Instant::now();
    let mut done = 0;
    loop {
        let query = sqlx::query(sqlx::AssertSqlSafe(claim.as_str())).bind("bench.event").bind(batch);
        let rows = query.fetch_all(&mut connection).await.expect("a claim");
        if rows.is_empty() {
            break;
        }
        let leases: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let leases = serde_json::to_string(&leases).expect("JSON");
        let query = sqlx::query(sqlx::AssertSqlSafe(settle.as_str())).bind(leases);
        done += query.execute(&mut connection).await.expect("a settlement").rows_affected();
    }
    assert_eq!(done, events, "the raw loop drains everything");
    began.elapsed()
}
