//! Enqueueing: all events of a request in one transaction, or none; a key or an id that is there already is judged by
//! the fingerprint of its request.

use std::sync::Arc;

use sqlx::sqlite::SqliteRow;
use sqlx::{SqlStr, SqliteConnection};

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::{event, get, id, instant, payload};
use super::statements::Statements;
use crate::event::{Due, NewEvent};
use crate::store::{EnqueueError, Enqueued, StoreError};

/// ?1 id or NULL, ?2 the place in its request, ?3 type, ?4 subject, ?5 payload, ?6 headers, ?7 key, ?8 fingerprint,
/// ?9 attempts limit, ?10 the due instant or NULL, ?11 the delay from now. An id that is made here is a UUID version 7
/// with the place in its request as counter, so that the events of one request keep their order.
pub(super) const INSERT: &str = "-- outbox: enqueue
INSERT INTO {events} (
    {id}, {event_type}, {subject}, {payload}, {headers}, {idempotency_key}, {fingerprint}, {max_attempts},
    {available_at}, {created_at}
)
VALUES (
    COALESCE(?1, lower(printf(
        '%08x-%04x-7%03x-%04x-%s',
        ({now} / 1000) >> 16,
        ({now} / 1000) & 65535,
        ?2 & 4095,
        32768 | (random() & 16383),
        hex(randomblob(6))
    ))),
    ?3, ?4, ?5, ?6, ?7, ?8, ?9, COALESCE(?10, {now} + ?11), {now}
)
RETURNING {id}, {created_at}, {available_at}";

/// ?1 key.
pub(super) const BY_KEY: &str = "-- outbox: event of a key
SELECT {event_columns}, NULL, {fingerprint}, CASE WHEN {fingerprint} IS NULL THEN {payload} END
FROM {events}
WHERE {idempotency_key} = ?1";

/// ?1 id.
pub(super) const BY_ID: &str = "-- outbox: event of an id
SELECT {event_columns}, NULL, {fingerprint}, CASE WHEN {fingerprint} IS NULL THEN {payload} END
FROM {events}
WHERE {id} = ?1";

impl SqliteStore {
    pub(super) async fn enqueue_all(&self, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> {
        let statements = Arc::clone(&self.statements);
        let events = events.to_vec();
        self.write(move |connection| {
            Box::pin(async move {
                let mut answers = Vec::with_capacity(events.len());
                for (index, new) in events.iter().enumerate() {
                    answers.push(enqueue_one(connection, &statements, index, new).await?);
                }
                Ok(answers)
            })
        })
        .await
    }
}

async fn enqueue_one(
    connection: &mut SqliteConnection,
    statements: &Statements,
    index: usize,
    new: &NewEvent,
) -> Result<Enqueued, EnqueueError> {
    let fingerprint = (new.id.is_some() || new.idempotency_key.is_some()).then(|| new.fingerprint());
    if let Some(key) = &new.idempotency_key {
        let known = find(connection, &statements.enqueue_by_key, key.clone()).await?;
        if let Some(known) = known {
            return replay(&known, new, fingerprint.as_deref())?.ok_or(EnqueueError::KeyReused { index });
        }
    }
    if let Some(id) = new.id {
        let known = find(connection, &statements.enqueue_by_id, id.to_string()).await?;
        if let Some(known) = known {
            return replay(&known, new, fingerprint.as_deref())?.ok_or(EnqueueError::IdConflict { index });
        }
    }
    Ok(insert(connection, statements, index, new, fingerprint).await?)
}

async fn find(
    connection: &mut SqliteConnection,
    statement: &SqlStr,
    key: String,
) -> Result<Option<SqliteRow>, StoreError> {
    sqlx::query(statement.clone()).bind(key).fetch_optional(connection).await.map_err(from_sqlx)
}

/// The known event, if it came from the same request; `None` when it is another one. An event from a plain INSERT has
/// no fingerprint: what it holds is compared instead.
fn replay(row: &SqliteRow, new: &NewEvent, fingerprint: Option<&[u8]>) -> Result<Option<Enqueued>, StoreError> {
    let known = event(row)?;
    let same = match get::<Option<Vec<u8>>>(row, 19)? {
        Some(stored) => Some(stored.as_slice()) == fingerprint,
        None => {
            known.event_type == new.event_type
                && payload(row, 20)?.as_deref() == Some(new.payload.as_str())
                && known.subject == new.subject
                && known.max_attempts == new.max_attempts
                && known.headers == new.headers
        }
    };
    Ok(same.then_some(Enqueued { event: known, created: false }))
}

async fn insert(
    connection: &mut SqliteConnection,
    statements: &Statements,
    index: usize,
    new: &NewEvent,
    fingerprint: Option<Vec<u8>>,
) -> Result<Enqueued, StoreError> {
    let (due_at, delay) = match new.due {
        Due::Now => (None, 0),
        Due::AfterMs(ms) => (None, i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000)),
        Due::At(at) => (Some(at.as_micros()), 0),
    };
    let query = sqlx::query(statements.enqueue.clone())
        .bind(new.id.map(|id| id.to_string()))
        .bind(i64::try_from(index).unwrap_or(0))
        .bind(new.event_type.clone())
        .bind(new.subject.clone())
        .bind(new.payload.clone())
        .bind(serde_json::json!(new.kept_headers()).to_string())
        .bind(new.idempotency_key.clone())
        .bind(fingerprint)
        .bind(new.max_attempts)
        .bind(due_at)
        .bind(delay);
    let row = query.fetch_one(connection).await.map_err(from_sqlx)?;
    Ok(Enqueued::new(new, id(&row, 0)?, instant(&row, 1)?, instant(&row, 2)?))
}
