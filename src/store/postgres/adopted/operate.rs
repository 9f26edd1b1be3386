//! Reading and changing single events of an adopted table, and retention.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use super::claim::{fetch_values, is_of_a_value};
use super::rows::{event, event_with_payload, id};
use super::statements::Statements;
use super::{AdoptedStore, PayloadKind};
use crate::event::{Event, EventId};
use crate::store::postgres::rows::date_time;
use crate::store::{
    Actor, DeadLetterPage, DeadLetterPosition, DeadLetterQuery, InFlightKey, RequeueChange, StoreError, Transition,
    micros,
};
use crate::timestamp::Timestamp;

/// A statement that makes an event skipped.
type Skip = fn(&Statements) -> Query<'_, Postgres, PgArguments>;

impl AdoptedStore {
    /// What the table does not allow.
    pub(super) fn refused(&self, why: &str) -> StoreError {
        StoreError::Unsupported { reason: format!("outbox {:?} cannot do this: {why}", self.name()) }
    }

    /// One event as it is now.
    pub(super) async fn read_event(&self, id: &EventId, with_payload: bool) -> Result<Option<Event>, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(None) };
        let found = self
            .read((id, with_payload), |statements, (id, with_payload), connection| {
                Box::pin(async move {
                    let query = |with_payload: bool| statements.event().bind(id).bind(with_payload);
                    let rows = shown(statements, *with_payload, query, connection).await?;
                    rows.first().map(event_with_payload).transpose()
                })
            })
            .await?;
        Ok(found.map(|event| self.with_lease_end(event)))
    }

    /// pending → skipped, where the table has a label for it.
    pub(super) async fn cancel_pending(
        &self,
        id: &EventId,
        reason: &str,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        self.skip(id, reason, by, Statements::cancel).await
    }

    /// `dead_letter` → skipped, where the table has a label for it.
    pub(super) async fn discard_dead_letter(
        &self,
        id: &EventId,
        reason: &str,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        self.skip(id, reason, by, Statements::discard).await
    }

    async fn skip(&self, id: &EventId, reason: &str, by: &Actor, change: Skip) -> Result<Transition, StoreError> {
        let Some(known) = self.known_id(id).await? else { return Ok(Transition::Absent) };
        let changed = self
            .call((known, reason.to_owned(), by.clone(), change), |statements, (id, reason, by, change), connection| {
                Box::pin(async move {
                    if !statements.has_skipped {
                        return Ok(None);
                    }
                    let query = change(statements).bind(id).bind(reason).bind(&by.name).bind(&by.note);
                    query.fetch_optional(connection).await?.as_ref().map(event).transpose()
                })
            })
            .await?;
        self.transition(id, changed).await
    }

    /// `dead_letter` → pending.
    pub(super) async fn requeue_dead_letter(
        &self,
        id: &EventId,
        change: RequeueChange,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        if change.max_attempts.is_some() && !self.statements().await?.has_max_attempts {
            return Err(self.refused("it has no column for the attempts limit"));
        }
        let Some(known) = self.known_id(id).await? else { return Ok(Transition::Absent) };
        let changed = self
            .call((known, change, by.clone()), |statements, (id, change, by), connection| {
                Box::pin(async move {
                    let query = statements.requeue().bind(id).bind(micros(change.delay)).bind(change.max_attempts);
                    let query = query.bind(&by.name).bind(&by.note);
                    query.fetch_optional(connection).await?.as_ref().map(event).transpose()
                })
            })
            .await?;
        self.transition(id, changed).await
    }

    /// What a guarded change has come to: when it changed nothing, what is there instead.
    async fn transition(&self, id: &EventId, changed: Option<Event>) -> Result<Transition, StoreError> {
        if let Some(event) = changed {
            return Ok(Transition::Applied(Box::new(self.with_lease_end(event))));
        }
        let there = self.read_event(id, false).await?;
        Ok(there.map_or(Transition::Absent, |event| Transition::Refused(Box::new(event))))
    }

    /// A page of dead letters, newest first.
    pub(super) async fn list_dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
        let limit = query.limit as usize;
        let events: Vec<Event> = self
            .read(query.clone(), |statements, query, connection| {
                Box::pin(async move {
                    let newest = || (Timestamp::from_micros(i64::MAX), String::new());
                    let after = query.after.as_ref().map(|after| (after.dead_at, after.id.to_string()));
                    let (at, id) = after.unwrap_or_else(newest);
                    let page = |with_payload: bool| {
                        statements
                            .dead_letters()
                            .bind(&query.types)
                            .bind(&query.subject)
                            .bind(&query.error_contains)
                            .bind(date_time(at))
                            .bind(id.clone())
                            .bind(i64::from(query.limit))
                            .bind(with_payload)
                    };
                    let rows = shown(statements, query.with_payload, page, connection).await?;
                    rows.iter().map(event_with_payload).collect()
                })
            })
            .await?;
        let last = events.last().filter(|_| events.len() >= limit);
        let position =
            |event: &Event| event.dead_at.map(|dead_at| DeadLetterPosition { dead_at, id: event.id.clone() });
        Ok(DeadLetterPage { next: last.and_then(position), events })
    }

    /// Live events that match.
    pub(super) async fn find_in_flight(&self, types: &[String], key: &InFlightKey) -> Result<Vec<EventId>, StoreError> {
        let statements = self.statements().await?;
        let is_text = matches!(statements.payload_kind, PayloadKind::Text | PayloadKind::Bytes);
        match key {
            InFlightKey::Payload { .. } if is_text => {
                return Err(
                    self.refused("its payload column is neither json nor jsonb: only subjects can be asked for")
                );
            }
            InFlightKey::Subject(_) if !statements.has_subject => {
                return Err(self.refused("it has no column for subjects"));
            }
            InFlightKey::Payload { .. } | InFlightKey::Subject(_) => {}
        }
        self.read((types.to_vec(), key.clone()), |statements, (types, key), connection| {
            Box::pin(async move {
                let query = match key {
                    InFlightKey::Subject(subject) => statements.in_flight_subject().bind(types).bind(subject),
                    InFlightKey::Payload { key, value } => {
                        statements.in_flight_payload().bind(types).bind(key).bind(value)
                    }
                };
                query.fetch_all(connection).await?.iter().map(id).collect()
            })
        })
        .await
    }

    /// Deletes old completed and skipped events.
    pub(super) async fn purge_old(
        &self,
        completed: Duration,
        skipped: Duration,
        limit: u32,
    ) -> Result<u64, StoreError> {
        self.call((micros(completed), micros(skipped), i64::from(limit)), |statements, arguments, connection| {
            Box::pin(async move {
                let (completed, skipped, limit) = arguments;
                let query = statements.purge().bind(completed).bind(skipped).bind(limit);
                let gone: i64 = query.fetch_one(connection).await?.try_get(0)?;
                Ok(u64::try_from(gone).unwrap_or(0))
            })
        })
        .await
    }
}

/// Reads events with their payloads, if they are wanted; where one cannot be written out, all of them without.
pub(super) async fn shown<'q>(
    statements: &Statements,
    with_payload: bool,
    query: impl Fn(bool) -> Query<'q, Postgres, PgArguments>,
    connection: &mut PgConnection,
) -> Result<Vec<PgRow>, sqlx::Error> {
    if !with_payload {
        return query(false).fetch_all(connection).await;
    }
    match fetch_values(statements, query(true), connection).await {
        Err(error) if is_of_a_value(&error) => query(false).fetch_all(connection).await,
        rows => rows,
    }
}
