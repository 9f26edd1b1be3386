//! Reading: one event, its attempts, what is in flight, dead letters.

use sqlx::Row;
use uuid::Uuid;

use super::call::Caller;
use super::rows::{attempt, date_time, event, event_with_payload, optional_instant};
use crate::event::{Event, EventId};
use crate::lease::ClaimKey;
use crate::store::{Attempt, DeadLetterPage, DeadLetterPosition, DeadLetterQuery, InFlightKey, StoreError};
use crate::timestamp::Timestamp;

/// Dead letters that one page looks at; filters may pass all of them over.
const LOOKED_AT: i64 = 2_000;

pub(super) async fn claim_key(caller: &Caller) -> Result<ClaimKey, StoreError> {
    caller
        .read((), |statements, (), connection| {
            Box::pin(async move {
                let row = statements.claim_key().fetch_one(connection).await?;
                Ok(ClaimKey::new(row.try_get("value")?))
            })
        })
        .await
}

pub(super) async fn one(caller: &Caller, id: Uuid, with_payload: bool) -> Result<Option<Event>, StoreError> {
    caller
        .read((id, with_payload), |statements, (id, with_payload), connection| {
            Box::pin(async move {
                let query = statements.event().bind(id).bind(with_payload);
                query.fetch_optional(connection).await?.as_ref().map(event_with_payload).transpose()
            })
        })
        .await
}

pub(super) async fn attempts(caller: &Caller, id: Uuid) -> Result<Vec<Attempt>, StoreError> {
    caller
        .read(id, |statements, id, connection| {
            Box::pin(async move {
                let query = statements.attempts().bind(id);
                query.fetch_all(connection).await?.iter().map(attempt).collect()
            })
        })
        .await
}

pub(super) async fn in_flight(
    caller: &Caller,
    types: &[String],
    key: &InFlightKey,
) -> Result<Vec<EventId>, StoreError> {
    caller
        .read((types.to_vec(), key.clone()), |statements, (types, key), connection| {
            Box::pin(async move {
                let query = match key {
                    InFlightKey::Subject(subject) => statements.in_flight_subject().bind(types).bind(subject),
                    InFlightKey::Payload { key, value } => {
                        statements.in_flight_payload().bind(types).bind(key).bind(value)
                    }
                };
                query.fetch_all(connection).await?.iter().map(|row| row.try_get(0).map(EventId::Uuid)).collect()
            })
        })
        .await
}

pub(super) async fn dead_letters(caller: &Caller, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
    caller
        .read(query.clone(), |statements, query, connection| {
            Box::pin(async move {
                let newest = DeadLetterPosition { dead_at: Timestamp::from_micros(i64::MAX), id: Uuid::max().into() };
                let after = query.after.clone().unwrap_or(newest);
                let rows = statements
                    .dead_letters()
                    .bind(&query.types)
                    .bind(&query.subject)
                    .bind(&query.error_contains)
                    .bind(date_time(after.dead_at))
                    .bind(after.id.uuid().unwrap_or_default())
                    .bind(i64::from(query.limit))
                    .bind(LOOKED_AT)
                    .bind(query.with_payload)
                    .fetch_all(connection)
                    .await?;
                let mut page = DeadLetterPage::default();
                for row in &rows {
                    if row.try_get::<Option<Uuid>, _>("id")?.is_some() {
                        page.events.push(Event { payload: row.try_get("payload")?, ..event(row)? });
                    }
                }
                page.next = next(query, &page.events, rows.first())?;
                Ok(page)
            })
        })
        .await
}

/// Behind the last one of a full page; else behind the last row looked at, unless there were no more.
fn next(
    query: &DeadLetterQuery,
    events: &[Event],
    row: Option<&sqlx::postgres::PgRow>,
) -> Result<Option<DeadLetterPosition>, sqlx::Error> {
    if events.len() >= query.limit as usize {
        let position =
            |event: &Event| event.dead_at.map(|dead_at| DeadLetterPosition { dead_at, id: event.id.clone() });
        return Ok(events.last().and_then(position));
    }
    let Some(row) = row else { return Ok(None) };
    if row.try_get::<i64, _>("looked_at")? < LOOKED_AT {
        return Ok(None);
    }
    let id: Option<Uuid> = row.try_get("last_id")?;
    let position = optional_instant(row, "last_at")?.zip(id);
    Ok(position.map(|(dead_at, id)| DeadLetterPosition { dead_at, id: id.into() }))
}
