//! Settlements: processing → wherever the handler's outcome leads, each under its own lease.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::{get, id};
use crate::lease::Lease;
use crate::outcome::{AttemptLine, Change, Settlement};
use crate::store::{StoreError, micros};

/// ?1 JSON array of [id, `claim_no`, number, `duration_ms`, outcome, `status_code`, error, response]. Runs before the
/// settlement, which clears `locked_at`; the guard is the same, and nobody else can write in between.
pub(super) const ATTEMPTS: &str = "-- outbox: log attempts
INSERT INTO {attempts_log} (event_id, claim_no, number, started_at, duration_ms, outcome, status_code, error, response)
SELECT
    e.{id},
    e.{claim_no},
    json_extract(line.value, '$[2]'),
    COALESCE(e.{locked_at}, {now}),
    json_extract(line.value, '$[3]'),
    json_extract(line.value, '$[4]'),
    json_extract(line.value, '$[5]'),
    json_extract(line.value, '$[6]'),
    json_extract(line.value, '$[7]')
FROM json_each(?1) AS line
CROSS JOIN {events} AS e INDEXED BY {by_id}
WHERE e.{id} = json_extract(line.value, '$[0]')
    AND e.{status} = {processing} AND e.{claim_no} = json_extract(line.value, '$[1]')
ON CONFLICT DO NOTHING";

/// ?1 JSON array of [id, `claim_no`]. Which of these leases are lost, asked before they are settled: mostly none, whereas
/// a settlement that returned every row would hand each over by itself from the connection's thread to ours.
pub(super) const LOST: &str = "-- outbox: find lost leases
SELECT lease.value ->> 0, lease.value ->> 1
FROM json_each(?1) AS lease
WHERE NOT EXISTS (
    SELECT 1
    FROM {events} AS e INDEXED BY {by_id}
    WHERE e.{id} = lease.value ->> 0 AND e.{status} = {processing} AND e.{claim_no} = lease.value ->> 1
)";

/// ?1 JSON array of ids, whose leases were found live in this transaction. What [`SETTLE`] does for a completion, without
/// asking of each event what else it could be.
pub(super) const COMPLETE: &str = "-- outbox: complete
UPDATE {events} INDEXED BY {by_id}
SET {status} = {completed},
    {processed_at} = {now},
    {deferred_since} = NULL,
    {locked_at} = NULL,
    {lease_until} = NULL
WHERE {id} IN (SELECT value FROM json_each(?1)) AND {status} = {processing}";

/// ?1 JSON array of [id, `claim_no`, change, delay, after the lease?, attempts spent, text]. The ids are named twice so
/// that the table is always searched by id, even when statistics call it empty.
pub(super) const SETTLE: &str = "-- outbox: settle
WITH s AS MATERIALIZED (
    SELECT
        json_extract(value, '$[0]') AS id,
        json_extract(value, '$[1]') AS claim_no,
        json_extract(value, '$[2]') AS change,
        json_extract(value, '$[3]') AS delay,
        json_extract(value, '$[4]') AS after_lease,
        json_extract(value, '$[5]') AS spent,
        json_extract(value, '$[6]') AS text
    FROM json_each(?1)
)
UPDATE {events} INDEXED BY {by_id}
SET {status} = CASE s.change
        WHEN 'complete' THEN {completed}
        WHEN 'skip' THEN {skipped}
        WHEN 'dead_letter' THEN {dead_letter}
        ELSE {pending}
    END,
    {attempts} = MIN({attempts} + s.spent, {most_attempts}),
    {available_at} = CASE
        WHEN s.change = 'retry' AND s.after_lease THEN MAX({now} + s.delay, COALESCE({lease_until}, 0))
        WHEN s.change IN ('retry', 'defer') THEN {now} + s.delay
        ELSE {available_at}
    END,
    {deferred_since} = CASE s.change
        WHEN 'defer' THEN COALESCE({deferred_since}, {now})
        WHEN 'release' THEN {deferred_since}
    END,
    {last_error} = CASE WHEN s.change IN ('complete', 'release') THEN {last_error} ELSE s.text END,
    {processed_at} = CASE WHEN s.change IN ('complete', 'skip', 'dead_letter') THEN {now} END,
    {dead_at} = CASE WHEN s.change = 'dead_letter' THEN {now} END,
    {locked_at} = NULL,
    {lease_until} = NULL
FROM s
WHERE {events}.{id} IN (SELECT s.id FROM s)
    AND {events}.{id} = s.id
    AND {events}.{status} = {processing}
    AND {events}.{claim_no} = s.claim_no";

/// ?1 id, ?2 `claim_no`, ?3 duration.
pub(super) const EXTEND: &str = "-- outbox: extend
UPDATE {events}
SET {lease_until} = {now} + ?3
WHERE {id} = ?1 AND {status} = {processing} AND {claim_no} = ?2";

impl SqliteStore {
    pub(super) async fn settle_all(&self, settlements: &[Settlement]) -> Result<Vec<Lease>, StoreError> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let is_complete = |settlement: &&Settlement| settlement.change == Change::Complete;
        let (completed, changed): (Vec<&Settlement>, Vec<&Settlement>) = settlements.iter().partition(is_complete);
        let completed: Vec<Lease> = completed.into_iter().map(|settlement| settlement.lease.clone()).collect();
        let changed = json_array(changed.into_iter().map(change_row));
        let lines = json_array(settlements.iter().filter_map(attempt_row));
        let mut leases: Vec<Lease> = settlements.iter().map(|settlement| settlement.lease.clone()).collect();
        leases.sort_unstable();
        leases.dedup();
        let statements = Arc::clone(&self.statements);
        self.write(move |connection| {
            Box::pin(async move {
                let asked = json_array(leases.iter().map(lease_row)).unwrap_or_default();
                let lost = sqlx::query(statements.lost.clone()).bind(asked);
                let lost = lost.fetch_all(&mut *connection).await.map_err(from_sqlx)?;
                let lost: HashSet<Lease> = lost.iter().map(lease).collect::<Result<_, _>>()?;
                let completed = completed.iter().filter(|lease| !lost.contains(lease));
                let completed = json_array(completed.map(|lease| json!(lease.event_id)));
                let steps = [
                    // First, for the settlement clears `locked_at`.
                    (&statements.settle_attempts, lines),
                    (&statements.complete, completed),
                    (&statements.settle, changed),
                ];
                for (statement, rows) in steps {
                    if let Some(rows) = rows {
                        let query = sqlx::query(statement.clone()).bind(rows);
                        query.execute(&mut *connection).await.map_err(from_sqlx)?;
                    }
                }
                leases.retain(|lease| !lost.contains(lease));
                Ok(leases)
            })
        })
        .await
    }

    pub(super) async fn extend_lease(&self, lease: &Lease, duration: Duration) -> Result<Option<Lease>, StoreError> {
        let statement = self.statements.extend.clone();
        let lease = lease.clone();
        self.write(move |connection| {
            Box::pin(async move {
                let query =
                    sqlx::query(statement).bind(lease.event_id.to_string()).bind(lease.claim_no).bind(micros(duration));
                let changed = query.execute(connection).await.map_err(from_sqlx)?.rows_affected();
                Ok((changed == 1).then_some(lease))
            })
        })
        .await
    }
}

/// `None` for no rows at all.
fn json_array(rows: impl Iterator<Item = Value>) -> Option<String> {
    let rows: Vec<Value> = rows.collect();
    (!rows.is_empty()).then(|| Value::Array(rows).to_string())
}

fn lease(row: &SqliteRow) -> Result<Lease, StoreError> {
    Ok(Lease { event_id: id(row, 0)?, claim_no: get(row, 1)? })
}

fn lease_row(lease: &Lease) -> Value {
    json!([lease.event_id, lease.claim_no])
}

fn change_row(settlement: &Settlement) -> Value {
    let (change, delay, after_lease, spent, text) = match &settlement.change {
        Change::Complete => ("complete", 0, false, 0, None),
        Change::Retry { delay, after_lease, error } => ("retry", micros(*delay), *after_lease, 1, Some(error)),
        Change::Defer { delay, reason } => ("defer", micros(*delay), false, 0, Some(reason)),
        Change::Skip { reason } => ("skip", 0, false, 0, Some(reason)),
        Change::DeadLetter { spends_attempt, error } => {
            ("dead_letter", 0, false, i32::from(*spends_attempt), Some(error))
        }
        Change::Release => ("release", 0, false, 0, None),
    };
    let lease = &settlement.lease;
    json!([lease.event_id, lease.claim_no, change, delay, after_lease, spent, text])
}

fn attempt_row(settlement: &Settlement) -> Option<Value> {
    let AttemptLine { number, duration, outcome, status_code, error, response } = settlement.attempt.as_ref()?;
    let duration_ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let lease = &settlement.lease;
    Some(json!([lease.event_id, lease.claim_no, number, duration_ms, outcome, status_code, error, response]))
}
