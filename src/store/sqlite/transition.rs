//! What operators do to single events: cancel, requeue, discard. Each is guarded by the status that it comes from.

use std::sync::Arc;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

use super::SqliteStore;
use super::actions::note;
use super::error::from_sqlx;
use super::row::event;
use crate::event::EventId;
use crate::store::{ActionKind, Actor, RequeueChange, StoreError, Transition, micros};

/// A payload limit that no payload meets.
const WITHOUT_PAYLOAD: i64 = -1;

/// A statement with its values.
type GuardedChange = Query<'static, Sqlite, SqliteArguments>;

/// ?1 id, ?2 reason.
pub(super) const CANCEL: &str = "-- outbox: cancel
UPDATE {events}
SET {status} = {skipped},
    {processed_at} = {now},
    {deferred_since} = NULL,
    {last_error} = ?2
WHERE {id} = ?1 AND {status} = {pending}
RETURNING {event_columns}, NULL";

/// ?1 id, ?2 delay, ?3 a new attempts limit or NULL.
pub(super) const REQUEUE: &str = "-- outbox: requeue
UPDATE {events}
SET {status} = {pending},
    {attempts} = 0,
    {max_attempts} = COALESCE(?3, {max_attempts}),
    {available_at} = {now} + ?2,
    {deferred_since} = NULL,
    {processed_at} = NULL,
    {dead_at} = NULL,
    {requeues} = MIN({requeues} + 1, {most_requeues})
WHERE {id} = ?1 AND {status} = {dead_letter}
RETURNING {event_columns}, NULL";

/// ?1 id, ?2 reason; an empty one keeps the error that made it a dead letter.
pub(super) const DISCARD: &str = "-- outbox: discard
UPDATE {events}
SET {status} = {skipped},
    {processed_at} = {now},
    {dead_at} = NULL,
    {last_error} = COALESCE(NULLIF(?2, ''), {last_error})
WHERE {id} = ?1 AND {status} = {dead_letter}
RETURNING {event_columns}, NULL";

impl SqliteStore {
    pub(super) async fn cancel_pending(
        &self,
        id: &EventId,
        reason: &str,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        let query = sqlx::query(self.statements.cancel.clone()).bind(id.to_string()).bind(reason.to_owned());
        self.change(id, query, ActionKind::Cancel, by).await
    }

    pub(super) async fn requeue_dead_letter(
        &self,
        id: &EventId,
        change: RequeueChange,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        let query = sqlx::query(self.statements.requeue.clone())
            .bind(id.to_string())
            .bind(micros(change.delay))
            .bind(change.max_attempts);
        self.change(id, query, ActionKind::Requeue, by).await
    }

    pub(super) async fn discard_dead_letter(
        &self,
        id: &EventId,
        reason: &str,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        let query = sqlx::query(self.statements.discard.clone()).bind(id.to_string()).bind(reason.to_owned());
        self.change(id, query, ActionKind::Discard, by).await
    }

    /// Runs the guarded change, notes it, and says what it found.
    async fn change(
        &self,
        id: &EventId,
        query: GuardedChange,
        kind: ActionKind,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        let statements = Arc::clone(&self.statements);
        let (id, by) = (id.to_string(), by.clone());
        self.write(move |connection| {
            Box::pin(async move {
                if let Some(row) = query.fetch_optional(&mut *connection).await.map_err(from_sqlx)? {
                    let changed = event(&row)?;
                    note(&statements, std::slice::from_ref(&changed.id), kind, &by, connection).await?;
                    return Ok(Transition::Applied(Box::new(changed)));
                }
                let find = sqlx::query(statements.event.clone()).bind(id).bind(WITHOUT_PAYLOAD);
                Ok(match find.fetch_optional(connection).await.map_err(from_sqlx)? {
                    Some(row) => Transition::Refused(Box::new(event(&row)?)),
                    None => Transition::Absent,
                })
            })
        })
        .await
    }
}
