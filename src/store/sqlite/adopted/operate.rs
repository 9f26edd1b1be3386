//! Reading and changing single events of an adopted table, and retention.

use std::time::Duration;

use sqlx::{Execute as _, Row as _};

use super::AdoptedStore;
use super::lists::note;
use super::rows::{event, id};
use super::statements::{Prepared, Statements};
use crate::event::{Event, EventId};
use crate::store::sqlite::inspect::by_payload;
use crate::store::{
    ActionKind, Actor, DeadLetterPage, DeadLetterPosition, DeadLetterQuery, InFlightKey, RequeueChange, StoreError,
    Transition, micros,
};

/// A payload limit that no payload meets.
pub(super) const WITHOUT_PAYLOAD: i64 = -1;

impl AdoptedStore {
    /// One event as it is now.
    pub(super) async fn read_event(&self, id: &EventId, with_payload: bool) -> Result<Option<Event>, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(None) };
        let limit = if with_payload { self.max_payload_bytes() } else { WITHOUT_PAYLOAD };
        let found = self
            .read(move |statements, connection| {
                Box::pin(async move {
                    let query = statements.event().bind(id).bind(limit);
                    query.fetch_optional(connection).await?.as_ref().map(event).transpose()
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
        let reason = reason.to_owned();
        self.change(id, ActionKind::Cancel, by, move |statements, id| {
            statements.has_skipped.then(|| statements.cancel().bind(id).bind(reason))
        })
        .await
    }

    /// `dead_letter` → skipped, where the table has a label for it.
    pub(super) async fn discard_dead_letter(
        &self,
        id: &EventId,
        reason: &str,
        by: &Actor,
    ) -> Result<Transition, StoreError> {
        let reason = reason.to_owned();
        self.change(id, ActionKind::Discard, by, move |statements, id| {
            statements.has_skipped.then(|| statements.discard().bind(id).bind(reason))
        })
        .await
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
        self.change(id, ActionKind::Requeue, by, move |statements, id| {
            Some(statements.requeue().bind(id).bind(micros(change.delay)).bind(change.max_attempts))
        })
        .await
    }

    /// Runs a guarded change, if the table allows it, notes who made it, and says what it found.
    async fn change(
        &self,
        id: &EventId,
        kind: ActionKind,
        by: &Actor,
        make: impl FnOnce(&Statements, String) -> Option<Prepared> + Send + 'static,
    ) -> Result<Transition, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(Transition::Absent) };
        let by = by.clone();
        let transition = self
            .call(move |statements, connection| {
                let query = make(statements, id.clone());
                Box::pin(async move {
                    if let Some(query) = query
                        && let Some(row) = query.fetch_optional(&mut *connection).await?
                    {
                        note(statements, id, kind, &by, connection).await?;
                        return Ok(Transition::Applied(Box::new(event(&row)?)));
                    }
                    let find = statements.event().bind(id).bind(WITHOUT_PAYLOAD);
                    Ok(match find.fetch_optional(connection).await? {
                        Some(row) => Transition::Refused(Box::new(event(&row)?)),
                        None => Transition::Absent,
                    })
                })
            })
            .await?;
        Ok(match transition {
            Transition::Applied(event) => Transition::Applied(Box::new(self.with_lease_end(*event))),
            Transition::Refused(event) => Transition::Refused(Box::new(self.with_lease_end(*event))),
            Transition::Absent => Transition::Absent,
        })
    }

    /// A page of dead letters, newest first.
    pub(super) async fn list_dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
        let limit = query.limit as usize;
        let query = query.clone();
        let max_payload_bytes = if query.with_payload { self.max_payload_bytes() } else { WITHOUT_PAYLOAD };
        let events: Vec<Event> = self
            .read(move |statements, connection| {
                Box::pin(async move {
                    let (at, id) = query
                        .after
                        .as_ref()
                        .map_or((i64::MAX, String::new()), |after| (after.dead_at.as_micros(), after.id.to_string()));
                    let page = statements
                        .dead_letters()
                        .bind(serde_json::json!(query.types).to_string())
                        .bind(query.subject)
                        .bind(query.error_contains)
                        .bind(at)
                        .bind(id)
                        .bind(query.limit)
                        .bind(max_payload_bytes);
                    page.fetch_all(connection).await?.iter().map(event).collect()
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
        let types = serde_json::json!(types).to_string();
        match key.clone() {
            InFlightKey::Subject(_) if !self.statements().await?.has_subject => {
                Err(self.refused("it has no column for subjects"))
            }
            InFlightKey::Subject(subject) => {
                self.read(move |statements, connection| {
                    Box::pin(async move {
                        let rows =
                            statements.in_flight_subject().bind(types).bind(subject).fetch_all(connection).await?;
                        rows.iter().map(|row| id(row, 0)).collect()
                    })
                })
                .await
            }
            InFlightKey::Payload { key, value } => {
                let statement = self.statements().await?.in_flight_payload().sql();
                let max_payload_bytes = self.max_payload_bytes();
                self.file()
                    .read(move |connection| {
                        Box::pin(by_payload(connection, statement, types, max_payload_bytes, key, value))
                    })
                    .await
            }
        }
    }

    /// Deletes old completed and skipped events. A reader finds them, so that what stays blocks nobody.
    pub(super) async fn purge_old(
        &self,
        completed: Duration,
        skipped: Duration,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let (completed, skipped) = (micros(completed), micros(skipped));
        let old: Vec<String> = self
            .read(move |statements, connection| {
                Box::pin(async move {
                    let query = statements.purge_find().bind(completed).bind(skipped).bind(limit);
                    query.fetch_all(connection).await?.iter().map(|row| row.try_get(0)).collect()
                })
            })
            .await?;
        if old.is_empty() {
            return Ok(0);
        }
        self.call(move |statements, connection| {
            Box::pin(async move {
                let query = statements.purge().bind(serde_json::json!(old).to_string()).bind(completed).bind(skipped);
                let gone = query.fetch_all(&mut *connection).await?;
                let ids = gone.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
                statements.purge_notes().bind(serde_json::json!(ids).to_string()).execute(connection).await?;
                Ok(gone.len() as u64)
            })
        })
        .await
    }
}
