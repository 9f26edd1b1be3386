//! Lists of an adopted table's events in the order of their ids, many dead letters at once, and the record of who did it.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::AdoptedStore;
use super::operate::WITHOUT_PAYLOAD;
use super::rows::{event, id};
use super::statements::Statements;
use crate::event::{Event, EventId};
use crate::store::sqlite::actions::line;
use crate::store::{
    Action, ActionKind, Actor, BulkChange, DeadLetterFilter, DeadLetterIds, DeadLetterPosition, EventPage,
    EventPosition, EventQuery, StoreError, micros,
};
use crate::timestamp::Timestamp;

/// Rows that one page looks at.
const LOOKED_AT: u32 = 10_000;

/// Writes a line within the transaction of the change.
pub(super) async fn note(
    statements: &Statements,
    id: String,
    kind: ActionKind,
    by: &Actor,
    connection: &mut SqliteConnection,
) -> Result<(), sqlx::Error> {
    let query = statements.note().bind(id).bind(kind.as_str()).bind(by.name.clone()).bind(by.note.clone());
    query.execute(connection).await.map(|_| ())
}

/// What a walk along the ids has found: those that match, at most so many, and where it goes on.
fn walked(rows: &[SqliteRow], looked_at: u32, limit: usize) -> Result<(Vec<EventId>, Option<EventId>), sqlx::Error> {
    let mut ids = Vec::new();
    for row in rows {
        if !row.try_get::<bool, _>(1)? {
            continue;
        }
        ids.push(id(row, 0)?);
        if ids.len() >= limit {
            let last = ids.last().cloned();
            return Ok((ids, last));
        }
    }
    let last = rows.last().filter(|_| rows.len() >= looked_at as usize);
    Ok((ids, last.map(|row| id(row, 0)).transpose()?))
}

impl AdoptedStore {
    /// What operators did to the event.
    pub(super) async fn read_actions(&self, id: &EventId) -> Result<Vec<Action>, StoreError> {
        let id = id.to_string();
        let rows = self
            .read(move |statements, connection| {
                Box::pin(async move { statements.read_notes().bind(id).fetch_all(connection).await })
            })
            .await?;
        rows.iter().map(line).collect()
    }

    /// A page of events.
    pub(super) async fn list_events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        let after = match &query.after {
            None => None,
            Some(after) => match self.known_id(&after.id).await? {
                Some(id) => Some(id),
                // A place that no row of this table can have.
                None => return Ok(EventPage::default()),
            },
        };
        let query = query.clone();
        let max_payload_bytes = if query.with_payload { self.max_payload_bytes() } else { WITHOUT_PAYLOAD };
        let page = self
            .read(move |statements, connection| {
                Box::pin(async move {
                    let statement = if query.rising { statements.events_rising() } else { statements.events() };
                    let looked_at = if query.is_unfiltered() { query.limit.saturating_add(1) } else { LOOKED_AT };
                    let statuses: Vec<&str> = query.statuses.iter().map(|status| status.as_str()).collect();
                    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
                    let walk = statement
                        .bind(serde_json::json!(statuses).to_string())
                        .bind(serde_json::json!(query.types).to_string())
                        .bind(query.subject.clone())
                        .bind(micros(query.created_after))
                        .bind(micros(query.created_before))
                        .bind(after)
                        .bind(looked_at);
                    let rows = walk.fetch_all(&mut *connection).await?;
                    let (ids, next) = walked(&rows, looked_at, query.limit as usize)?;
                    let mut events: Vec<Event> = Vec::with_capacity(ids.len());
                    for id in ids {
                        let find = statements.event().bind(id.to_string()).bind(max_payload_bytes);
                        events.extend(find.fetch_optional(&mut *connection).await?.as_ref().map(event).transpose()?);
                    }
                    // What has changed since it was found.
                    events.retain(|event| query.wants(event.status));
                    // Here the id is the whole order.
                    let place = |id| EventPosition { created_at: Timestamp::from_micros(0), id };
                    Ok(EventPage { events, next: next.map(place) })
                })
            })
            .await?;
        Ok(EventPage { events: page.events.into_iter().map(|event| self.with_lease_end(event)).collect(), ..page })
    }

    /// Ids of dead letters in the order of the ids.
    pub(super) async fn find_dead(
        &self,
        filter: &DeadLetterFilter,
        after: Option<&DeadLetterPosition>,
        limit: u32,
    ) -> Result<DeadLetterIds, StoreError> {
        let after = match after {
            None => None,
            Some(after) => match self.known_id(&after.id).await? {
                Some(id) => Some(id),
                None => return Ok(DeadLetterIds::default()),
            },
        };
        let filter = filter.clone();
        self.read(move |statements, connection| {
            Box::pin(async move {
                let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
                let walk = statements
                    .find_dead()
                    .bind(serde_json::json!(filter.types).to_string())
                    .bind(filter.subject)
                    .bind(filter.error_contains)
                    .bind(micros(filter.dead_after))
                    .bind(micros(filter.dead_before))
                    .bind(after)
                    .bind(LOOKED_AT);
                let (ids, next) = walked(&walk.fetch_all(connection).await?, LOOKED_AT, limit as usize)?;
                // Here the id is the whole order.
                let place = |id| DeadLetterPosition { dead_at: Timestamp::from_micros(0), id };
                Ok(DeadLetterIds { ids, next: next.map(place) })
            })
        })
        .await
    }

    /// Which of these are dead letters.
    pub(super) async fn find_dead_among(&self, ids: &[EventId]) -> Result<Vec<EventId>, StoreError> {
        let ids = serde_json::json!(ids).to_string();
        self.read(move |statements, connection| {
            Box::pin(async move {
                let rows = statements.dead_among().bind(ids).fetch_all(connection).await?;
                rows.iter().map(|row| id(row, 0)).collect()
            })
        })
        .await
    }

    /// Changes those that are dead letters, all in one transaction.
    pub(super) async fn change_dead(
        &self,
        ids: &[EventId],
        change: &BulkChange,
        by: &Actor,
    ) -> Result<Vec<EventId>, StoreError> {
        if matches!(change, BulkChange::Discard { .. }) && !self.statements().await?.has_skipped {
            return Err(self.refused("its table has no label for skipped events"));
        }
        let (ids, change, by) = (ids.to_vec(), change.clone(), by.clone());
        self.call(move |statements, connection| {
            Box::pin(async move {
                let mut changed = Vec::new();
                for id in ids {
                    let text = id.to_string();
                    let (query, kind) = match &change {
                        BulkChange::Requeue { spread } => {
                            let delay = micros(spread.mul_f64(fastrand::f64()));
                            (statements.requeue().bind(text.clone()).bind(delay).bind(None::<i32>), ActionKind::Requeue)
                        }
                        BulkChange::Discard { reason } => {
                            (statements.discard().bind(text.clone()).bind(reason.clone()), ActionKind::Discard)
                        }
                    };
                    if query.fetch_optional(&mut *connection).await?.is_some() {
                        note(statements, text, kind, &by, &mut *connection).await?;
                        changed.push(id);
                    }
                }
                Ok(changed)
            })
        })
        .await
    }
}
