//! The list of dead letters, newest first. A page looks at 2,000 dead letters at most, so that a rare filter costs no
//! more than a common one; then it is short, or empty, and says where to go on.

use std::sync::Arc;

use sqlx::SqliteConnection;

use super::SqliteStore;
use super::error::from_sqlx;
use super::lists::read_events;
use super::row::{get, id, instant};
use super::statements::Statements;
use crate::event::Status;
use crate::store::{DeadLetterFilter, DeadLetterIds, DeadLetterPage, DeadLetterPosition, DeadLetterQuery, StoreError};

/// Dead letters that a page looks at.
const LOOKED_AT: usize = 2_000;

/// ?1 types as a JSON array, empty for all; ?2 and ?3 the position behind which; ?4 subject or NULL; ?5 text in the error
/// or NULL; ?6 dead letters to look at; ?7 the earliest instant.
pub(super) const SCAN: &str = "-- outbox: scan dead letters
SELECT
    e.{id},
    e.{dead_at},
    (?1 = '[]' OR e.{event_type} IN (SELECT value FROM json_each(?1)))
        AND (?4 IS NULL OR COALESCE(e.{subject} = ?4, 0))
        AND (?5 IS NULL OR COALESCE(instr(e.{last_error}, ?5) > 0, 0))
FROM {events} AS e INDEXED BY outbox_event_dead_newest
WHERE e.{dead_at} IS NOT NULL AND (e.{dead_at}, e.{id}) < (?2, ?3) AND e.{dead_at} >= ?7
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
    AND e.{dead_at} >= ?7
ORDER BY e.{dead_at} DESC, e.{id} DESC
LIMIT ?6";

impl SqliteStore {
    pub(super) async fn list_dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
        let statements = Arc::clone(&self.statements);
        let max_payload_bytes = if query.with_payload { self.max_payload_bytes } else { -1 };
        let query = query.clone();
        self.read(move |connection| {
            Box::pin(async move {
                let after = query.after.as_ref();
                let found = scan(connection, &statements, &query.filter(), after, query.limit).await?;
                let mut events = read_events(connection, &statements, &found.ids, max_payload_bytes).await?;
                events.retain(|event| event.status == Status::DeadLetter);
                Ok(DeadLetterPage { events, next: found.next })
            })
        })
        .await
    }

    pub(super) async fn find_dead(
        &self,
        filter: &DeadLetterFilter,
        after: Option<&DeadLetterPosition>,
        limit: u32,
    ) -> Result<DeadLetterIds, StoreError> {
        let statements = Arc::clone(&self.statements);
        let (filter, after) = (filter.clone(), after.cloned());
        self.read(move |connection| {
            Box::pin(async move { scan(connection, &statements, &filter, after.as_ref(), limit).await })
        })
        .await
    }
}

/// The matching ids of the page, in order, and where the next page goes on.
async fn scan(
    connection: &mut SqliteConnection,
    statements: &Statements,
    filter: &DeadLetterFilter,
    after: Option<&DeadLetterPosition>,
    limit: u32,
) -> Result<DeadLetterIds, StoreError> {
    let (statement, types) = match filter.types.as_slice() {
        [one] => (&statements.dead_letters_of_type, one.clone()),
        several => (&statements.dead_letters, serde_json::json!(several).to_string()),
    };
    let place = |place: &DeadLetterPosition| (place.dead_at.as_micros(), place.id.to_string());
    let before = filter.dead_before.map(|before| (before.as_micros(), String::new()));
    let begin = [after.map(place), before].into_iter().flatten().min();
    let (before, before_id) = begin.unwrap_or((i64::MAX, String::new()));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let unfiltered = filter.types.len() < 2 && !filter.reads_rows();
    let looked_at = if unfiltered { limit.saturating_add(1).min(LOOKED_AT) } else { LOOKED_AT };
    let scan = sqlx::query(statement.clone())
        .bind(types)
        .bind(before)
        .bind(before_id)
        .bind(filter.subject.clone())
        .bind(filter.error_contains.clone())
        .bind(i64::try_from(looked_at).unwrap_or(i64::MAX))
        .bind(filter.dead_after.map_or(i64::MIN, |after| after.as_micros().saturating_add(1)));
    let rows = scan.fetch_all(connection).await.map_err(from_sqlx)?;
    let mut found = DeadLetterIds::default();
    for (place, row) in rows.iter().enumerate() {
        let position = DeadLetterPosition { dead_at: instant(row, 1)?, id: id(row, 0)? };
        let is_last = place + 1 == rows.len() && rows.len() < looked_at;
        found.next = (!is_last).then(|| position.clone());
        if get(row, 2)? {
            found.ids.push(position.id);
            if found.ids.len() == limit {
                break;
            }
        }
    }
    Ok(found)
}
