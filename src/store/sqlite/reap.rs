//! Expired leases taken back: processing → pending, or → dead letter at the attempts limit.

use std::sync::Arc;

use sqlx::SqliteConnection;

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::{get, id, instant, status};
use super::statements::Statements;
use crate::event::{EventId, Status};
use crate::store::{Position, ReapLane, ReapPage, Reaped, StoreError};

/// ?1 type, ?2 and ?3 the position behind which, ?4 the page's size. A claim without an end counts as expired: only a
/// foreign hand can have written it, and nothing else would ever free it.
pub(super) const PAGE: &str = "-- outbox: page of due events
SELECT
    e.{id},
    e.{available_at},
    e.{status} = {processing},
    e.{status} = {processing} AND COALESCE(e.{lease_until} < {now}, 1)
FROM {events} AS e INDEXED BY outbox_event_live
WHERE e.{processed_at} IS NULL AND e.{event_type} = ?1 AND e.{target} = ''
    AND (e.{available_at}, e.{id}) > (?2, ?3)
    AND e.{available_at} <= {now}
ORDER BY e.{available_at}, e.{id}
LIMIT ?4";

/// ?1 id.
pub(super) const FIND: &str = "-- outbox: expired lease of an event
SELECT {id}
FROM {events}
WHERE {id} = ?1 AND {status} = {processing} AND COALESCE({lease_until} < {now}, 1)";

/// ?1 JSON array of ids, found expired in this transaction.
pub(super) const ATTEMPTS: &str = "-- outbox: log expired attempts
INSERT INTO {attempts_log} (event_id, claim_no, number, started_at, duration_ms, outcome, error)
SELECT
    e.{id},
    e.{claim_no},
    e.{attempts} + 1,
    COALESCE(e.{locked_at}, {now}),
    MAX(0, ({now} - COALESCE(e.{locked_at}, {now})) / 1000),
    'expired',
    'claim expired'
FROM json_each(?1) AS expired
CROSS JOIN {events} AS e INDEXED BY {by_id}
WHERE e.{id} = expired.value AND e.{status} = {processing}
ON CONFLICT DO NOTHING";

/// ?1 JSON array of ids, found expired in this transaction.
pub(super) const REAP: &str = "-- outbox: reap
UPDATE {events} INDEXED BY {by_id}
SET {status} = CASE WHEN {attempts} + 1 >= {max_attempts} THEN {dead_letter} ELSE {pending} END,
    {attempts} = MIN({attempts} + 1, {most_attempts}),
    {available_at} = {now},
    {processed_at} = CASE WHEN {attempts} + 1 >= {max_attempts} THEN {now} END,
    {dead_at} = CASE WHEN {attempts} + 1 >= {max_attempts} THEN {now} END,
    {deferred_since} = NULL,
    {locked_at} = NULL,
    {lease_until} = NULL,
    {last_error} = 'claim expired'
WHERE {id} IN (SELECT value FROM json_each(?1)) AND {status} = {processing}
RETURNING {id}, {event_type}, {status}";

impl SqliteStore {
    pub(super) async fn reap_lanes(&self, lanes: &[ReapLane], page: u32) -> Result<ReapPage, StoreError> {
        let statements = Arc::clone(&self.statements);
        let lanes = lanes.to_vec();
        self.write(move |connection| {
            Box::pin(async move {
                let mut result = ReapPage::default();
                for lane in &lanes {
                    let (expired, unfinished) = look(connection, &statements, lane, page).await?;
                    result.unfinished.extend(unfinished);
                    result.reaped.extend(take_back(connection, &statements, &expired).await?);
                }
                Ok(result)
            })
        })
        .await
    }

    pub(super) async fn reap_one(&self, event_id: &EventId) -> Result<Option<Reaped>, StoreError> {
        let statements = Arc::clone(&self.statements);
        let event_id = event_id.to_string();
        self.write(move |connection| {
            Box::pin(async move {
                let query = sqlx::query(statements.reap_find.clone()).bind(event_id);
                let found = query.fetch_optional(&mut *connection).await.map_err(from_sqlx)?;
                let expired: Vec<EventId> = found.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?;
                Ok(take_back(connection, &statements, &expired).await?.pop())
            })
        })
        .await
    }
}

/// The expired leases on a lane's page, and where the page ended if more may lie behind.
async fn look(
    connection: &mut SqliteConnection,
    statements: &Statements,
    lane: &ReapLane,
    page: u32,
) -> Result<(Vec<EventId>, Option<ReapLane>), StoreError> {
    let (after_instant, after_id) = lane
        .after
        .as_ref()
        .map_or((i64::MIN, String::new()), |after| (after.available_at.as_micros(), after.id.to_string()));
    let query = sqlx::query(statements.reap_page.clone())
        .bind(lane.event_type.clone())
        .bind(after_instant)
        .bind(after_id)
        .bind(page);
    let rows = query.fetch_all(connection).await.map_err(from_sqlx)?;
    let mut expired = Vec::new();
    let mut end = None;
    for row in &rows {
        let position = Position { available_at: instant(row, 1)?, id: id(row, 0)? };
        end = get::<bool>(row, 2)?.then(|| position.clone());
        if get(row, 3)? {
            expired.push(position.id);
        }
    }
    let full = u32::try_from(rows.len()).is_ok_and(|count| count >= page);
    let unfinished = end.filter(|_| full);
    Ok((expired, unfinished.map(|after| ReapLane { event_type: lane.event_type.clone(), after: Some(after) })))
}

async fn take_back(
    connection: &mut SqliteConnection,
    statements: &Statements,
    expired: &[EventId],
) -> Result<Vec<Reaped>, StoreError> {
    if expired.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::json!(expired).to_string();
    let attempts = sqlx::query(statements.reap_attempts.clone()).bind(ids.clone());
    attempts.execute(&mut *connection).await.map_err(from_sqlx)?;
    let rows = sqlx::query(statements.reap.clone()).bind(ids).fetch_all(connection).await.map_err(from_sqlx)?;
    rows.iter()
        .map(|row| {
            let status: Status = status(row, 2)?;
            Ok(Reaped { event_id: id(row, 0)?, event_type: get(row, 1)?, status })
        })
        .collect()
}
