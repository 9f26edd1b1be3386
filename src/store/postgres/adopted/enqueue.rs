//! Enqueueing into an adopted table: all events of a request or none. Without a place for fingerprints a replay is known by
//! its id and its content.

use sqlx::Connection;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::AdoptedStore;
use super::fit::IdKind;
use super::rows::{event, event_with_payload};
use super::statements::Statements;
use crate::event::{Due, Event, NewEvent};
use crate::store::adopted::is_replay;
use crate::store::postgres::rows::date_time;
use crate::store::{EnqueueError, Enqueued, StoreError};

impl AdoptedStore {
    /// Writes all events or none.
    pub(super) async fn write_events(&self, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> {
        let statements = self.statements().await?;
        for event in events {
            self.check_new(&statements, event)?;
        }
        let written = self
            .call(events.to_vec(), |statements, events, connection| Box::pin(write(statements, events, connection)))
            .await?;
        written.map_err(|index| EnqueueError::IdConflict { index })
    }

    /// Refuses what the table cannot hold.
    fn check_new(&self, statements: &Statements, event: &NewEvent) -> Result<(), StoreError> {
        let fixed_type = self.description().fixed_type.as_ref();
        if event.idempotency_key.is_some() {
            Err(self.refused("it has no column for idempotency keys"))
        } else if event.subject.is_some() && !statements.has_subject {
            Err(self.refused("it has no column for subjects"))
        } else if !event.headers.is_empty() && !statements.has_headers {
            Err(self.refused("it has no column for headers"))
        } else if event.id.is_some() && matches!(statements.id_kind, IdKind::Number { .. }) {
            Err(self.refused("its ids are numbers that the database gives"))
        } else if fixed_type.is_some_and(|fixed| *fixed != event.event_type) {
            Err(self.refused("all its events are of one type, and it is another"))
        } else {
            Ok(())
        }
    }
}

/// The answers in the order of the requests, or which request's id belongs to another event.
async fn write(
    statements: &Statements,
    events: &[NewEvent],
    connection: &mut PgConnection,
) -> Result<Result<Vec<Enqueued>, usize>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let mut answers = Vec::with_capacity(events.len());
    for (index, new) in events.iter().enumerate() {
        let id = new.id.unwrap_or_else(Uuid::now_v7).to_string();
        let (due_at, delay_ms) = match new.due {
            Due::Now => (None, 0),
            Due::AfterMs(ms) => (None, i64::try_from(ms).unwrap_or(i64::MAX)),
            Due::At(at) => (Some(date_time(at)), 0),
        };
        // A table without a place for headers has none for the trace.
        let headers = if statements.has_headers { new.kept_headers() } else { new.headers.clone() };
        let headers = (!headers.is_empty()).then(|| serde_json::json!(headers).to_string());
        // With an id of our own nothing of outboxd's can clash: what does is the application's affair, and an error.
        let insert = if new.id.is_some() { statements.insert() } else { statements.insert_new() };
        let query = insert
            .bind(&id)
            .bind(&new.event_type)
            .bind(&new.payload)
            .bind(&new.subject)
            .bind(headers)
            .bind(new.max_attempts)
            .bind(due_at)
            .bind(delay_ms);
        if let Some(row) = query.fetch_optional(&mut *transaction).await? {
            answers.push(Enqueued { event: event(&row)?, created: true });
            continue;
        }
        let row = statements.event().bind(&id).bind(true).fetch_optional(&mut *transaction).await?;
        let there = row.as_ref().map(event_with_payload).transpose()?.filter(|there| is_replay(there, new));
        let Some(there) = there else {
            transaction.rollback().await?;
            return Ok(Err(index));
        };
        answers.push(Enqueued { event: Event { payload: None, ..there }, created: false });
    }
    transaction.commit().await?;
    Ok(Ok(answers))
}
