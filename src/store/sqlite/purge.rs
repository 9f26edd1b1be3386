//! Retention: completed and skipped events go when they are old enough, oldest first, with their logs. Dead
//! letters and live events stay, however old.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Row as _;

use super::SqliteStore;
use super::error::from_sqlx;
use crate::store::{StoreError, micros};

/// ?1 and ?2 ages of completed and skipped events, ?3 events at most. An event cannot end before it was created, so the
/// index on `created_at` bounds the search. Runs as a reader: what stays for ever is passed over without blocking anybody.
pub(super) const FIND: &str = "-- outbox: find what may go
SELECT e.rowid
FROM {events} AS e INDEXED BY outbox_event_created
WHERE e.{created_at} < {now} - MIN(?1, ?2)
    AND (
        (e.{status} = {completed} AND e.{processed_at} < {now} - ?1)
        OR (e.{status} = {skipped} AND e.{processed_at} < {now} - ?2)
    )
ORDER BY e.{created_at}
LIMIT ?3";

/// ?1 rowids as a JSON array.
pub(super) const ATTEMPTS: &str = "-- outbox: purge attempt logs
DELETE FROM {attempts_log}
WHERE event_id IN (
    SELECT e.{id}
    FROM {events} AS e
    WHERE e.rowid IN (SELECT value FROM json_each(?1)) AND e.{status} IN ({completed}, {skipped})
)";

/// ?1 rowids as a JSON array.
pub(super) const PURGE: &str = "-- outbox: purge
DELETE FROM {events}
WHERE rowid IN (SELECT value FROM json_each(?1)) AND {status} IN ({completed}, {skipped})";

/// ?1 rowids as a JSON array.
pub(super) const ACTIONS: &str = "-- outbox: purge logs of actions
DELETE FROM {actions}
WHERE outbox = {own_outbox} AND event_id IN (
    SELECT e.{id}
    FROM {events} AS e
    WHERE e.rowid IN (SELECT value FROM json_each(?1)) AND e.{status} IN ({completed}, {skipped})
)";

impl SqliteStore {
    pub(super) async fn purge_old(
        &self,
        completed: Duration,
        skipped: Duration,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let find = self.statements.purge_find.clone();
        let found = self
            .read(move |connection| {
                Box::pin(async move {
                    let query = sqlx::query(find).bind(micros(completed)).bind(micros(skipped)).bind(limit);
                    query.fetch_all(connection).await.map_err(from_sqlx)
                })
            })
            .await?;
        if found.is_empty() {
            return Ok(0);
        }
        let rows = found.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>().map_err(from_sqlx)?;
        let rows = serde_json::json!(rows).to_string();
        let statements = Arc::clone(&self.statements);
        self.write(move |connection| {
            Box::pin(async move {
                let attempts = sqlx::query(statements.purge_attempts.clone()).bind(rows.clone());
                attempts.execute(&mut *connection).await.map_err(from_sqlx)?;
                let actions = sqlx::query(statements.purge_actions.clone()).bind(rows.clone());
                actions.execute(&mut *connection).await.map_err(from_sqlx)?;
                let purge = sqlx::query(statements.purge.clone()).bind(rows);
                Ok(purge.execute(connection).await.map_err(from_sqlx)?.rows_affected())
            })
        })
        .await
    }
}
