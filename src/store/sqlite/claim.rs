//! Claims: pending → processing.

use std::sync::Arc;
use std::time::Duration;

use sqlx::SqliteConnection;

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::claimed;
use super::statements::Statements;
use crate::event::EventId;
use crate::lease::ClaimedEvent;
use crate::store::{Claim, LaneClaim, StoreError, SubjectClaim, micros};

/// ?1 type, ?2 and ?3 the position from which on, ?4 events at most, ?5 lease, ?6 the largest payload that is read.
/// `SQLite` has no LATERAL: one statement per lane, all in one transaction.
pub(super) const CLAIM_LANE: &str = "-- outbox: claim a lane
UPDATE {events} INDEXED BY {by_id}
SET {status} = {processing},
    {locked_at} = {now},
    {lease_until} = {now} + ?5,
    {claim_no} = {claim_no} + 1
WHERE {id} IN (
    SELECT e.{id}
    FROM {events} AS e INDEXED BY outbox_event_live
    WHERE e.{processed_at} IS NULL AND e.{event_type} = ?1 AND e.{target} = ''
        AND (e.{available_at}, e.{id}) >= (?2, ?3)
        AND e.{available_at} <= {now} AND e.{status} = {pending}
        AND e.{claim_no} < {last_claim_no}
    ORDER BY e.{available_at}, e.{id}
    LIMIT ?4
)
RETURNING {claimed_columns}, CASE WHEN length(CAST({payload} AS BLOB)) <= ?6 THEN {payload} END";

/// ?1 the lanes as a JSON array of [type, lease], ?2 subject, ?3 events at most, ?4 the largest payload that is read.
pub(super) const CLAIM_SUBJECT: &str = "-- outbox: claim a subject
UPDATE {events} INDEXED BY {by_id}
SET {status} = {processing},
    {locked_at} = {now},
    {lease_until} = {now} + (
        SELECT json_extract(lane.value, '$[1]')
        FROM json_each(?1) AS lane
        WHERE json_extract(lane.value, '$[0]') = {event_type}
    ),
    {claim_no} = {claim_no} + 1
WHERE {id} IN (
    SELECT e.{id}
    FROM {events} AS e INDEXED BY outbox_event_subject
    WHERE e.{subject} = ?2 AND e.{processed_at} IS NULL AND e.{target} = ''
        AND e.{available_at} <= {now} AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}
        AND e.{event_type} IN (SELECT json_extract(lane.value, '$[0]') FROM json_each(?1) AS lane)
    ORDER BY e.{available_at}, e.{id}
    LIMIT ?3
)
RETURNING {claimed_columns}, CASE WHEN length(CAST({payload} AS BLOB)) <= ?4 THEN {payload} END";

/// ?1 id, ?2 lease, ?3 the largest payload that is read.
pub(super) const CLAIM_BY_ID: &str = "-- outbox: claim by id
UPDATE {events}
SET {status} = {processing},
    {locked_at} = {now},
    {lease_until} = {now} + ?2,
    {claim_no} = {claim_no} + 1
WHERE {id} = ?1 AND {status} = {pending} AND {available_at} <= {now} AND {claim_no} < {last_claim_no}
RETURNING {claimed_columns}, CASE WHEN length(CAST({payload} AS BLOB)) <= ?3 THEN {payload} END";

/// ?1 id.
pub(super) const IS_DUE: &str = "-- outbox: ask whether an event is due
SELECT EXISTS (SELECT 1 FROM {events} AS e WHERE e.{id} = ?1 AND e.{status} = {pending} AND e.{available_at} <= {now})";

impl SqliteStore {
    pub(super) async fn ask_due(&self, id: &EventId) -> Result<bool, StoreError> {
        let statements = Arc::clone(&self.statements);
        let id = id.to_string();
        self.read(move |connection| {
            Box::pin(async move {
                let query = sqlx::query_scalar(statements.is_due.clone()).bind(id);
                query.fetch_one(connection).await.map_err(from_sqlx)
            })
        })
        .await
    }

    pub(super) async fn claim_lanes(&self, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> {
        let statements = Arc::clone(&self.statements);
        let claim = claim.clone();
        let max_payload_bytes = self.max_payload_bytes;
        self.write(move |connection| {
            Box::pin(async move {
                if let Some(confined) = &claim.subject {
                    return claim_subject(connection, &statements, &claim.lanes, confined, max_payload_bytes).await;
                }
                let mut events = Vec::new();
                for lane in &claim.lanes {
                    events.extend(claim_lane(connection, &statements, lane, max_payload_bytes).await?);
                }
                Ok(events)
            })
        })
        .await
    }

    pub(super) async fn claim_one(&self, id: &EventId, lease: Duration) -> Result<Option<ClaimedEvent>, StoreError> {
        let statement = self.statements.claim_by_id.clone();
        let max_payload_bytes = self.max_payload_bytes;
        let id = id.to_string();
        self.write(move |connection| {
            Box::pin(async move {
                let query = sqlx::query(statement).bind(id).bind(micros(lease)).bind(max_payload_bytes);
                let row = query.fetch_optional(connection).await.map_err(from_sqlx)?;
                row.as_ref().map(claimed).transpose()
            })
        })
        .await
    }
}

async fn claim_lane(
    connection: &mut SqliteConnection,
    statements: &Statements,
    lane: &LaneClaim,
    max_payload_bytes: i64,
) -> Result<Vec<ClaimedEvent>, StoreError> {
    let (from_instant, from_id) = lane
        .from
        .as_ref()
        .map_or((i64::MIN, String::new()), |from| (from.available_at.as_micros(), from.id.to_string()));
    let query = sqlx::query(statements.claim_lane.clone())
        .bind(lane.event_type.clone())
        .bind(from_instant)
        .bind(from_id)
        .bind(lane.limit)
        .bind(micros(lane.lease))
        .bind(max_payload_bytes);
    query.fetch_all(connection).await.map_err(from_sqlx)?.iter().map(claimed).collect()
}

async fn claim_subject(
    connection: &mut SqliteConnection,
    statements: &Statements,
    lanes: &[LaneClaim],
    confined: &SubjectClaim,
    max_payload_bytes: i64,
) -> Result<Vec<ClaimedEvent>, StoreError> {
    let lanes: Vec<(&str, i64)> = lanes.iter().map(|lane| (lane.event_type.as_str(), micros(lane.lease))).collect();
    let query = sqlx::query(statements.claim_subject.clone())
        .bind(serde_json::json!(lanes).to_string())
        .bind(confined.subject.clone())
        .bind(confined.limit)
        .bind(max_payload_bytes);
    query.fetch_all(connection).await.map_err(from_sqlx)?.iter().map(claimed).collect()
}
