//! The list of events, by their ids. Where an index holds few candidates, all of them are looked at; else the ids are
//! walked along, a bounded number of them a page.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::{SqlStr, SqliteConnection};

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::{event, get, id};
use super::statements::Statements;
use crate::event::{Event, EventId};
use crate::store::{EventPage, EventPosition, EventQuery, StoreError};
use crate::timestamp::Timestamp;

/// Events that a page looks at.
const LOOKED_AT: usize = 10_000;
/// What the first try looks at, for each event that is wanted: most filters let many pass.
const FIRST_LOOK: usize = 10;

/// The id and whether it matches. ?1 statuses and ?2 types as JSON arrays, empty for all; ?3 subject, ?4 and ?5 instants
/// between which it was created, each or NULL. In all of these ?6 is the place behind which to go on, ?7 the number of rows to
/// look at.
pub(super) const LISTED_COLUMNS: &str = "e.{id},
    (?1 = '[]' OR e.{status} IN (SELECT value FROM json_each(?1)))
        AND (?2 = '[]' OR e.{event_type} IN (SELECT value FROM json_each(?2)))
        AND (?3 IS NULL OR COALESCE(e.{subject} = ?3, 0))
        AND (?4 IS NULL OR e.{created_at} > ?4)
        AND (?5 IS NULL OR e.{created_at} < ?5)";

pub(super) const FALLING: &str = "-- outbox: list events, newest first
SELECT {listed_columns}
FROM {events} AS e INDEXED BY {by_id}
WHERE e.{id} < COALESCE(?6, 'g')
ORDER BY e.{id} DESC
LIMIT ?7";

pub(super) const RISING: &str = "-- outbox: list events, oldest first
SELECT {listed_columns}
FROM {events} AS e INDEXED BY {by_id}
WHERE e.{id} > COALESCE(?6, '')
ORDER BY e.{id}
LIMIT ?7";

pub(super) const LIVE: &str = "-- outbox: list live events, where there are few
SELECT {listed_columns}
FROM {events} AS e INDEXED BY outbox_event_live
WHERE e.{processed_at} IS NULL AND ?6 IS NULL
LIMIT ?7";

pub(super) const LIVE_OF_TYPES: &str = "-- outbox: list live events of some types, where there are few
SELECT {listed_columns}
FROM {events} AS e INDEXED BY outbox_event_live
WHERE e.{processed_at} IS NULL AND e.{event_type} IN (SELECT value FROM json_each(?2)) AND ?6 IS NULL
LIMIT ?7";

pub(super) const DEAD: &str = "-- outbox: list dead letters among the events, where there are few
SELECT {listed_columns}
FROM {events} AS e INDEXED BY outbox_event_dead_newest
WHERE e.{dead_at} IS NOT NULL AND ?6 IS NULL
LIMIT ?7";

pub(super) const DEAD_OF_TYPES: &str =
    "-- outbox: list dead letters of some types among the events, where there are few
SELECT {listed_columns}
FROM {events} AS e INDEXED BY outbox_event_dead
WHERE e.{dead_at} IS NOT NULL AND e.{event_type} IN (SELECT value FROM json_each(?2)) AND ?6 IS NULL
LIMIT ?7";

pub(super) const OF_SUBJECT: &str = "-- outbox: list the events of a subject, where there are few
SELECT {listed_columns}
FROM {events} AS e INDEXED BY outbox_event_subject
WHERE e.{subject} = ?3 AND ?6 IS NULL
LIMIT ?7";

/// ?1 ids as a JSON array, ?2 the largest payload that is read; -1 for none.
pub(super) const READ: &str = "-- outbox: read several events
SELECT {event_columns}, CASE WHEN length(CAST({payload} AS BLOB)) <= ?2 THEN {payload} END
FROM {events} INDEXED BY {by_id}
WHERE {id} IN (SELECT value FROM json_each(?1))";

impl SqliteStore {
    pub(super) async fn list_events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        let statements = Arc::clone(&self.statements);
        let max_payload_bytes = if query.with_payload { self.max_payload_bytes } else { -1 };
        let query = query.clone();
        self.read(move |connection| {
            Box::pin(async move {
                let (ids, next) = find(connection, &statements, &query).await?;
                let mut events = read_events(connection, &statements, &ids, max_payload_bytes).await?;
                // What has changed since it was found.
                events.retain(|event| query.wants(event.status));
                // Here the id is the whole order.
                let place = |id| EventPosition { created_at: Timestamp::from_micros(0), id };
                Ok(EventPage { events, next: next.map(place) })
            })
        })
        .await
    }
}

/// Ids in order, and the one behind which the next page goes on.
async fn find(
    connection: &mut SqliteConnection,
    statements: &Statements,
    query: &EventQuery,
) -> Result<(Vec<EventId>, Option<EventId>), StoreError> {
    let limit = query.limit as usize;
    let mut after = query.after.as_ref().map(|after| after.id.clone());
    for statement in few(statements, query) {
        let rows = look(connection, statement, query, None, LOOKED_AT).await?;
        if rows.len() < LOOKED_AT {
            let mut ids: Vec<EventId> = rows.into_iter().filter_map(|(id, matches)| matches.then_some(id)).collect();
            ids.retain(|id| after.as_ref().is_none_or(|after| if query.rising { id > after } else { id < after }));
            ids.sort_unstable_by(|one, other| if query.rising { one.cmp(other) } else { other.cmp(one) });
            let next = ids.get(limit.saturating_sub(1)).filter(|_| ids.len() > limit).cloned();
            ids.truncate(limit);
            return Ok((ids, next));
        }
    }
    let walk = if query.rising { &statements.events_rising } else { &statements.events_falling };
    let first = if query.is_unfiltered() { limit + 1 } else { limit * FIRST_LOOK };
    let mut ids = Vec::new();
    for looked_at in [first.min(LOOKED_AT), LOOKED_AT] {
        let rows = look(connection, walk, query, after.as_ref(), looked_at).await?;
        let is_end = rows.len() < looked_at;
        let count = rows.len();
        for (place, (id, matches)) in rows.into_iter().enumerate() {
            after = Some(id.clone());
            if matches {
                ids.push(id);
            }
            if ids.len() == limit {
                return Ok((ids, after.filter(|_| !is_end || place + 1 < count)));
            }
        }
        if is_end {
            return Ok((ids, None));
        }
    }
    Ok((ids, after))
}

/// Statements that are good where they find few rows, the narrowest first.
fn few<'s>(statements: &'s Statements, query: &EventQuery) -> Vec<&'s SqlStr> {
    let mut ways = Vec::new();
    if query.subject.is_some() {
        ways.push(&statements.events_of_subject);
    }
    match (query.is_live(), query.is_dead(), query.types.is_empty()) {
        (true, _, true) => ways.push(&statements.events_live),
        (true, _, false) => ways.push(&statements.events_live_of_types),
        (_, true, true) => ways.push(&statements.events_dead),
        (_, true, false) => ways.push(&statements.events_dead_of_types),
        (false, false, _) => {}
    }
    ways
}

async fn look(
    connection: &mut SqliteConnection,
    statement: &SqlStr,
    query: &EventQuery,
    after: Option<&EventId>,
    looked_at: usize,
) -> Result<Vec<(EventId, bool)>, StoreError> {
    let statuses: Vec<&str> = query.statuses.iter().map(|status| status.as_str()).collect();
    let query = sqlx::query(statement.clone())
        .bind(serde_json::json!(statuses).to_string())
        .bind(serde_json::json!(query.types).to_string())
        .bind(query.subject.clone())
        .bind(query.created_after.map(Timestamp::as_micros))
        .bind(query.created_before.map(Timestamp::as_micros))
        .bind(after.map(ToString::to_string))
        .bind(i64::try_from(looked_at).unwrap_or(i64::MAX));
    let rows = query.fetch_all(connection).await.map_err(from_sqlx)?;
    rows.iter().map(|row| Ok((id(row, 0)?, get(row, 1)?))).collect()
}

/// These events in the order of their ids as given; those that are gone are left out.
pub(super) async fn read_events(
    connection: &mut SqliteConnection,
    statements: &Statements,
    ids: &[EventId],
    max_payload_bytes: i64,
) -> Result<Vec<Event>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let query =
        sqlx::query(statements.events_read.clone()).bind(serde_json::json!(ids).to_string()).bind(max_payload_bytes);
    let rows = query.fetch_all(connection).await.map_err(from_sqlx)?;
    let events = rows.iter().map(event).collect::<Result<Vec<_>, _>>()?;
    let mut by_id: HashMap<EventId, Event> = events.into_iter().map(|event| (event.id.clone(), event)).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}
