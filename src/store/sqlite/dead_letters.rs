//! The list of dead letters, newest first. A page looks at 2,000 dead letters at most, so that a rare filter costs no
//! more than a common one; then it is short, or empty, and says where to go on.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::SqliteConnection;

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::{event, get, id, instant};
use super::statements::Statements;
use crate::event::{Event, EventId};
use crate::store::{DeadLetterPage, DeadLetterPosition, DeadLetterQuery, StoreError};

/// Dead letters that a page looks at.
const LOOKED_AT: usize = 2_000;

/// ?1 types as a JSON array, empty for all; ?2 and ?3 the position behind which; ?4 subject or NULL; ?5 text in the error
/// or NULL; ?6 dead letters at most.
pub(super) const SCAN: &str = "-- outbox: scan dead letters
SELECT
    e.{id},
    e.{dead_at},
    (?1 = '[]' OR e.{event_type} IN (SELECT value FROM json_each(?1)))
        AND (?4 IS NULL OR COALESCE(e.{subject} = ?4, 0))
        AND (?5 IS NULL OR COALESCE(instr(e.{last_error}, ?5) > 0, 0))
FROM {events} AS e INDEXED BY outbox_event_dead_newest
WHERE e.{dead_at} IS NOT NULL AND (e.{dead_at}, e.{id}) < (?2, ?3)
ORDER BY e.{dead_at} DESC, e.{id} DESC
LIMIT ?6";

/// The same for one type, ?1.
pub(super) const SCAN_TYPE: &str = "-- outbox: scan dead letters of a type
SELECT
    e.{id},
    e.{dead_at},
    (?4 IS NULL OR COALESCE(e.{subject} = ?4, 0))
        AND (?5 IS NULL OR COALESCE(instr(e.{last_error}, ?5) > 0, 0))
FROM {events} AS e INDEXED BY outbox_event_dead
WHERE e.{dead_at} IS NOT NULL AND e.{event_type} = ?1 AND (e.{dead_at}, e.{id}) < (?2, ?3)
ORDER BY e.{dead_at} DESC, e.{id} DESC
LIMIT ?6";

/// ?1 ids as a JSON array, ?2 the largest payload that is read; -1 for none.
pub(super) const READ: &str = "-- outbox: read dead letters
SELECT {event_columns}, CASE WHEN length(CAST({payload} AS BLOB)) <= ?2 THEN {payload} END
FROM {events}
WHERE {id} IN (SELECT value FROM json_each(?1)) AND {status} = {dead_letter}";

impl SqliteStore {
    pub(super) async fn list_dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
        let statements = Arc::clone(&self.statements);
        let max_payload_bytes = if query.with_payload { self.max_payload_bytes } else { -1 };
        let query = query.clone();
        self.read(move |connection| {
            Box::pin(async move {
                let (places, next) = scan(connection, &statements, &query).await?;
                let events = read(connection, &statements, &places, max_payload_bytes).await?;
                Ok(DeadLetterPage { events, next })
            })
        })
        .await
    }
}

/// The matching ids of the page, in order, and where the next page goes on.
async fn scan(
    connection: &mut SqliteConnection,
    statements: &Statements,
    query: &DeadLetterQuery,
) -> Result<(Vec<EventId>, Option<DeadLetterPosition>), StoreError> {
    let (statement, types) = match query.types.as_slice() {
        [one] => (&statements.dead_letters_of_type, one.clone()),
        several => (&statements.dead_letters, serde_json::json!(several).to_string()),
    };
    let (before, before_id) = query
        .after
        .as_ref()
        .map_or((i64::MAX, String::new()), |after| (after.dead_at.as_micros(), after.id.to_string()));
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let unfiltered = query.types.len() < 2 && query.subject.is_none() && query.error_contains.is_none();
    let looked_at = if unfiltered { limit.saturating_add(1).min(LOOKED_AT) } else { LOOKED_AT };
    let scan = sqlx::query(statement.clone())
        .bind(types)
        .bind(before)
        .bind(before_id)
        .bind(query.subject.clone())
        .bind(query.error_contains.clone())
        .bind(i64::try_from(looked_at).unwrap_or(i64::MAX));
    let rows = scan.fetch_all(connection).await.map_err(from_sqlx)?;
    let mut ids = Vec::new();
    let mut next = None;
    for (place, row) in rows.iter().enumerate() {
        let position = DeadLetterPosition { dead_at: instant(row, 1)?, id: id(row, 0)? };
        let is_last = place + 1 == rows.len() && rows.len() < looked_at;
        next = (!is_last).then(|| position.clone());
        if get(row, 2)? {
            ids.push(position.id);
            if ids.len() == limit {
                break;
            }
        }
    }
    Ok((ids, next))
}

async fn read(
    connection: &mut SqliteConnection,
    statements: &Statements,
    ids: &[EventId],
    max_payload_bytes: i64,
) -> Result<Vec<Event>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query(statements.dead_letters_read.clone())
        .bind(serde_json::json!(ids).to_string())
        .bind(max_payload_bytes);
    let rows = query.fetch_all(connection).await.map_err(from_sqlx)?;
    let events = rows.iter().map(event).collect::<Result<Vec<_>, _>>()?;
    let mut by_id: HashMap<EventId, Event> = events.into_iter().map(|event| (event.id.clone(), event)).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}
