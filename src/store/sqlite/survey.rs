//! What stands in the lanes: the survey of all of them, the peek into some. Both only read.

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::{get, id, optional_instant};
use crate::store::{Claim, LaneFront, Peek, Position, StoreError};

/// ?1 the type after which to begin, ?2 lanes at most. Each step of the recursion is one probe of the live index.
pub(super) const SURVEY: &str = "-- outbox: survey
WITH RECURSIVE lane(event_type) AS (
    SELECT (
        SELECT e.{event_type}
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} > ?1 AND e.{target} = ''
        ORDER BY e.{event_type}
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT e.{event_type}
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} > lane.event_type AND e.{target} = ''
        ORDER BY e.{event_type}
        LIMIT 1
    )
    FROM lane
    WHERE lane.event_type IS NOT NULL
    LIMIT ?2
)
SELECT
    lane.event_type,
    COALESCE((
        SELECT NOT (e.{status} = {pending} AND e.{claim_no} < {last_claim_no})
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
            AND e.{available_at} <= {now}
        ORDER BY e.{available_at}, e.{id}
        LIMIT 1
    ), 0),
    claimable.{available_at},
    claimable.{id},
    (
        SELECT e.{available_at}
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
            AND e.{available_at} > {now}
        ORDER BY e.{available_at}
        LIMIT 1
    )
FROM lane
LEFT JOIN {events} AS claimable ON claimable.rowid = (
    SELECT e.rowid
    FROM {events} AS e INDEXED BY outbox_event_live
    WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
        AND e.{available_at} <= {now} AND e.{status} = {pending}
        AND e.{claim_no} < {last_claim_no}
    ORDER BY e.{available_at}, e.{id}
    LIMIT 1
)
WHERE lane.event_type IS NOT NULL";

/// ?1 the lanes' types as a JSON array.
pub(super) const PEEK: &str = "-- outbox: peek
SELECT
    COALESCE(MAX(EXISTS (
        SELECT 1
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.value AND e.{target} = ''
            AND e.{available_at} <= {now} AND e.{status} = {pending}
            AND e.{claim_no} < {last_claim_no}
    )), 0),
    MIN((
        SELECT e.{available_at}
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.value AND e.{target} = ''
            AND e.{available_at} > {now}
        ORDER BY e.{available_at}
        LIMIT 1
    ))
FROM json_each(?1) AS lane";

/// ?1 the lanes' types as a JSON array, ?2 the subject.
pub(super) const PEEK_SUBJECT: &str = "-- outbox: peek at a subject
SELECT
    COALESCE(MAX(e.{available_at} <= {now} AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}), 0),
    MIN(CASE WHEN e.{available_at} > {now} THEN e.{available_at} END)
FROM {events} AS e INDEXED BY outbox_event_subject
WHERE e.{subject} = ?2 AND e.{processed_at} IS NULL AND e.{target} = ''
    AND e.{event_type} IN (SELECT value FROM json_each(?1))";

impl SqliteStore {
    pub(super) async fn survey_lanes(&self, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError> {
        let statement = self.statements.survey.clone();
        let after = after.unwrap_or_default().to_owned();
        let rows = self
            .read(move |connection| {
                Box::pin(async move {
                    let query = sqlx::query(statement).bind(after).bind(limit);
                    query.fetch_all(connection).await.map_err(from_sqlx)
                })
            })
            .await?;
        rows.iter()
            .map(|row| {
                let claimable = match optional_instant(row, 2)? {
                    Some(available_at) => Some(Position { available_at, id: id(row, 3)? }),
                    None => None,
                };
                Ok(LaneFront {
                    event_type: get(row, 0)?,
                    claimed_at_front: get(row, 1)?,
                    claimable,
                    next_due_at: optional_instant(row, 4)?,
                })
            })
            .collect()
    }

    pub(super) async fn peek_lanes(&self, claim: &Claim) -> Result<Peek, StoreError> {
        let types: Vec<&str> = claim.lanes.iter().map(|lane| lane.event_type.as_str()).collect();
        let types = serde_json::json!(types).to_string();
        let subject = claim.subject.as_ref().map(|confined| confined.subject.clone());
        let statement = match subject {
            None => self.statements.peek.clone(),
            Some(_) => self.statements.peek_subject.clone(),
        };
        self.read(move |connection| {
            Box::pin(async move {
                let mut query = sqlx::query(statement).bind(types);
                if let Some(subject) = subject {
                    query = query.bind(subject);
                }
                let row = query.fetch_one(connection).await.map_err(from_sqlx)?;
                Ok(Peek { claimable: get(&row, 0)?, next_due_at: optional_instant(&row, 1)? })
            })
        })
        .await
    }
}
