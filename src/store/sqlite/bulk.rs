//! Many dead letters changed in one immediate transaction: those that are still dead letters, and their lines in the log.

use std::sync::Arc;

use super::SqliteStore;
use super::actions::note;
use super::error::from_sqlx;
use super::row::id;
use crate::event::EventId;
use crate::store::{ActionKind, Actor, BulkChange, StoreError, micros};

/// ?1 ids as a JSON array.
pub(super) const AMONG: &str = "-- outbox: which of these are dead letters
SELECT e.{id}
FROM {events} AS e INDEXED BY {by_id}
WHERE e.{id} IN (SELECT value FROM json_each(?1)) AND e.{status} = {dead_letter}
ORDER BY e.{id}";

/// ?1 ids as a JSON array, ?2 microseconds over which the due times are spread.
pub(super) const REQUEUE: &str = "-- outbox: requeue many
UPDATE {events} INDEXED BY {by_id}
SET {status} = {pending},
    {attempts} = 0,
    {available_at} = {now} + ABS(random() % (?2 + 1)),
    {deferred_since} = NULL,
    {processed_at} = NULL,
    {dead_at} = NULL,
    {requeues} = MIN({requeues} + 1, {most_requeues})
WHERE {id} IN (SELECT value FROM json_each(?1)) AND {status} = {dead_letter}
RETURNING {id}";

/// ?1 ids as a JSON array, ?2 reason; an empty one keeps the error that made them dead letters.
pub(super) const DISCARD: &str = "-- outbox: discard many
UPDATE {events} INDEXED BY {by_id}
SET {status} = {skipped},
    {processed_at} = {now},
    {dead_at} = NULL,
    {last_error} = COALESCE(NULLIF(?2, ''), {last_error})
WHERE {id} IN (SELECT value FROM json_each(?1)) AND {status} = {dead_letter}
RETURNING {id}";

impl SqliteStore {
    pub(super) async fn find_dead_among(&self, ids: &[EventId]) -> Result<Vec<EventId>, StoreError> {
        let query = sqlx::query(self.statements.dead_letters_among.clone()).bind(serde_json::json!(ids).to_string());
        self.read(move |connection| {
            Box::pin(async move {
                query.fetch_all(connection).await.map_err(from_sqlx)?.iter().map(|row| id(row, 0)).collect()
            })
        })
        .await
    }

    pub(super) async fn change_dead(
        &self,
        ids: &[EventId],
        change: &BulkChange,
        by: &Actor,
    ) -> Result<Vec<EventId>, StoreError> {
        let statements = Arc::clone(&self.statements);
        let ids = serde_json::json!(ids).to_string();
        let (query, kind) = match change {
            BulkChange::Requeue { spread } => {
                (sqlx::query(statements.requeue_many.clone()).bind(ids).bind(micros(*spread)), ActionKind::Requeue)
            }
            BulkChange::Discard { reason } => {
                (sqlx::query(statements.discard_many.clone()).bind(ids).bind(reason.clone()), ActionKind::Discard)
            }
        };
        let by = by.clone();
        self.write(move |connection| {
            Box::pin(async move {
                let rows = query.fetch_all(&mut *connection).await.map_err(from_sqlx)?;
                let changed = rows.iter().map(|row| id(row, 0)).collect::<Result<Vec<_>, _>>()?;
                note(&statements, &changed, kind, &by, connection).await?;
                Ok(changed)
            })
        })
        .await
    }
}
