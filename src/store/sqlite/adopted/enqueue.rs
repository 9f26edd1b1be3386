//! Enqueueing into an adopted table: all events of a request or none. Without a place for fingerprints a replay is known by
//! its id and its content.

use sqlx::SqliteConnection;
use uuid::Uuid;

use super::AdoptedStore;
use super::fit::IdKind;
use super::rows::event;
use super::statements::Statements;
use crate::event::{Due, Event, NewEvent};
use crate::store::adopted::is_replay;
use crate::store::sqlite::error::from_sqlx;
use crate::store::{EnqueueError, Enqueued, StoreError};

impl AdoptedStore {
    /// Writes all events or none.
    pub(super) async fn write_events(&self, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> {
        let statements = self.statements().await?;
        for event in events {
            self.check_new(&statements, event)?;
        }
        let events = events.to_vec();
        let limit = self.max_payload_bytes();
        self.file()
            .write(move |connection| {
                Box::pin(async move {
                    let mut answers = Vec::with_capacity(events.len());
                    for (index, new) in events.iter().enumerate() {
                        let written = write(&statements, new, limit, connection).await.map_err(from_sqlx)?;
                        answers.push(written.ok_or(EnqueueError::IdConflict { index })?);
                    }
                    Ok(answers)
                })
            })
            .await
    }

    /// Refuses what the table cannot hold.
    fn check_new(&self, statements: &Statements, event: &NewEvent) -> Result<(), StoreError> {
        let fixed_type = self.description().fixed_type.as_ref();
        let is_number = statements.id_kind == IdKind::Number;
        if event.idempotency_key.is_some() {
            Err(self.refused("it has no column for idempotency keys"))
        } else if event.subject.is_some() && !statements.has_subject {
            Err(self.refused("it has no column for subjects"))
        } else if !event.headers.is_empty() && !statements.has_headers {
            Err(self.refused("it has no column for headers"))
        } else if event.id.is_some() && is_number {
            Err(self.refused("its ids are numbers that the database gives"))
        } else if is_number && !statements.gives_ids {
            Err(self.refused("its ids are numbers that the database does not give"))
        } else if fixed_type.is_some_and(|fixed| *fixed != event.event_type) {
            Err(self.refused("all its events are of one type, and it is another"))
        } else {
            Ok(())
        }
    }
}

/// The answer, or `None` when the id belongs to another event.
async fn write(
    statements: &Statements,
    new: &NewEvent,
    max_payload_bytes: i64,
    connection: &mut SqliteConnection,
) -> Result<Option<Enqueued>, sqlx::Error> {
    let id = new.id.unwrap_or_else(Uuid::now_v7).to_string();
    let (due_at, delay) = match new.due {
        Due::Now => (None, 0),
        Due::AfterMs(ms) => (None, i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000)),
        Due::At(at) => (Some(at.as_micros()), 0),
    };
    // A table without a place for headers has none for the trace.
    let headers = if statements.has_headers { new.kept_headers() } else { new.headers.clone() };
    let headers = (!headers.is_empty()).then(|| serde_json::json!(headers).to_string());
    // With an id of our own nothing of outboxd's can clash: what does is the application's affair, and an error.
    let insert = if new.id.is_some() { statements.insert() } else { statements.insert_new() };
    let query = insert
        .bind(id.clone())
        .bind(new.event_type.clone())
        .bind(new.payload.clone())
        .bind(new.subject.clone())
        .bind(headers)
        .bind(new.max_attempts)
        .bind(due_at)
        .bind(delay);
    if let Some(row) = query.fetch_optional(&mut *connection).await? {
        return Ok(Some(Enqueued { event: event(&row)?, created: true }));
    }
    let row = statements.event().bind(id).bind(max_payload_bytes).fetch_optional(connection).await?;
    let there = row.as_ref().map(event).transpose()?.filter(|there| is_replay(there, new));
    Ok(there.map(|there| Enqueued { event: Event { payload: None, ..there }, created: false }))
}
