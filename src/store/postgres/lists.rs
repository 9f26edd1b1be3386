//! Lists: events by their ids, dead letters by their instants. Ids are found first, by statements that look at narrow rows and
//! a bounded number of them; the events of one page are read afterwards.

use std::collections::HashMap;

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::call::Caller;
use super::rows::{date_time, event_with_payload, instant};
use super::statements::Statements;
use crate::event::{Event, EventId, Status};
use crate::store::{
    DeadLetterFilter, DeadLetterIds, DeadLetterPage, DeadLetterPosition, DeadLetterQuery, EventPage, EventPosition,
    EventQuery, StoreError,
};
use crate::timestamp::Timestamp;

/// Dead letters that one page looks at; filters may pass all of them over.
const DEAD_LOOKED_AT: i64 = 2_000;
/// Events that one page looks at.
const LOOKED_AT: i64 = 10_000;
/// What the first try looks at, for each event that is wanted: most filters let many pass.
const FIRST_LOOK: i64 = 10;

type Statement<'q> = Query<'q, Postgres, PgArguments>;

pub(super) async fn dead_letters(caller: &Caller, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
    caller
        .read(query.clone(), |statements, query, connection| {
            Box::pin(async move {
                let after = query.after.as_ref();
                let found = find_dead(statements, &query.filter(), after, query.limit, &mut *connection).await?;
                let mut events = read(statements, &found.ids, query.with_payload, connection).await?;
                events.retain(|event| event.status == Status::DeadLetter);
                Ok(DeadLetterPage { events, next: found.next })
            })
        })
        .await
}

pub(super) async fn find_dead_letters(
    caller: &Caller,
    filter: &DeadLetterFilter,
    after: Option<&DeadLetterPosition>,
    limit: u32,
) -> Result<DeadLetterIds, StoreError> {
    caller
        .read((filter.clone(), after.cloned(), limit), |statements, (filter, after, limit), connection| {
            Box::pin(find_dead(statements, filter, after.as_ref(), *limit, connection))
        })
        .await
}

pub(super) async fn dead_letters_among(caller: &Caller, ids: Vec<Uuid>) -> Result<Vec<EventId>, StoreError> {
    caller
        .read(ids, |statements, ids, connection| {
            Box::pin(async move {
                let rows = statements.dead_among().bind(ids).fetch_all(connection).await?;
                rows.iter().map(|row| row.try_get(0).map(EventId::Uuid)).collect()
            })
        })
        .await
}

async fn find_dead(
    statements: &Statements,
    filter: &DeadLetterFilter,
    after: Option<&DeadLetterPosition>,
    limit: u32,
    connection: &mut PgConnection,
) -> Result<DeadLetterIds, sqlx::Error> {
    let mut types = filter.types.clone();
    types.sort_unstable();
    types.dedup();
    let all = if filter.reads_rows() { DEAD_LOOKED_AT } else { (i64::from(limit) + 1).min(DEAD_LOOKED_AT) };
    let (statement, looked_at) = match i64::try_from(types.len()).unwrap_or(i64::MAX) {
        0 => (statements.find_dead(), all),
        // Each type's share of what a page may look at; a short page goes on all the same.
        several => (statements.find_dead_of_types(), all.min((DEAD_LOOKED_AT / several).max(1))),
    };
    let before = filter.dead_before.map(|before| DeadLetterPosition { dead_at: before, id: Uuid::nil().into() });
    let newest = DeadLetterPosition { dead_at: Timestamp::from_micros(i64::MAX), id: Uuid::max().into() };
    let place = [after.cloned(), before].into_iter().flatten().min().unwrap_or(newest);
    let earliest = filter.dead_after.map_or(i64::MIN, |after| after.as_micros().saturating_add(1));
    let mut statement = statement
        .bind(&filter.subject)
        .bind(&filter.error_contains)
        .bind(date_time(place.dead_at))
        .bind(place.id.uuid().unwrap_or_default())
        .bind(date_time(Timestamp::from_micros(earliest)))
        .bind(i64::from(limit))
        .bind(looked_at);
    if !types.is_empty() {
        statement = statement.bind(&types);
    }
    let mut found = dead_ids(&statement.fetch_all(connection).await?, limit)?;
    // Behind the earliest instant nothing matches.
    found.next = found.next.filter(|next| next.dead_at.as_micros() >= earliest);
    Ok(found)
}

/// What the rows of `find_dead` say: the page goes on behind its last one when it is full, else where looking has stopped.
fn dead_ids(rows: &[PgRow], limit: u32) -> Result<DeadLetterIds, sqlx::Error> {
    let (mut places, mut stop) = (Vec::with_capacity(rows.len()), None);
    for row in rows {
        let place = DeadLetterPosition { dead_at: instant(row, "dead_at")?, id: row.try_get::<Uuid, _>("id")?.into() };
        if row.try_get("matches")? { places.push(place) } else { stop = Some(place) }
    }
    places.sort_unstable_by(|one, other| other.cmp(one));
    let last = places.last().filter(|_| places.len() >= limit as usize).cloned();
    Ok(DeadLetterIds { next: last.or(stop), ids: places.into_iter().map(|place| place.id).collect() })
}

pub(super) async fn events(caller: &Caller, query: &EventQuery) -> Result<EventPage, StoreError> {
    caller
        .read(query.clone(), |statements, query, connection| {
            Box::pin(async move {
                let (ids, next) = find_events(statements, query, &mut *connection).await?;
                let mut events = read(statements, &ids, query.with_payload, connection).await?;
                // What has changed since it was found.
                events.retain(|event| query.wants(event.status));
                // Here the id is the whole order.
                let place = |id| EventPosition { created_at: Timestamp::from_micros(0), id };
                Ok(EventPage { events, next: next.map(|id| place(EventId::Uuid(id))) })
            })
        })
        .await
}

/// Ids in order, and the one behind which the next page goes on.
///
/// Where an index holds few candidates, all of them are looked at; else the ids are walked along.
async fn find_events(
    statements: &Statements,
    query: &EventQuery,
    connection: &mut PgConnection,
) -> Result<(Vec<EventId>, Option<Uuid>), sqlx::Error> {
    let limit = i64::from(query.limit);
    let mut after = query.after.as_ref().and_then(|after| after.id.uuid());
    for statement in few(statements, query) {
        let found = look(bound(statement, query, after, LOOKED_AT), &mut *connection).await?;
        if found.looked_at < LOOKED_AT {
            let last = found.ids.last().filter(|_| found.ids.len() >= query.limit as usize).copied();
            return Ok((found.ids.into_iter().map(EventId::Uuid).collect(), last));
        }
    }
    let mut ids: Vec<EventId> = Vec::new();
    let first = if query.is_unfiltered() { limit + 1 } else { limit * FIRST_LOOK };
    for looked_at in [first.min(LOOKED_AT), LOOKED_AT] {
        let walk = if query.rising { statements.find_events_rising() } else { statements.find_events() };
        let rest =
            EventQuery { limit: query.limit.saturating_sub(u32::try_from(ids.len()).unwrap_or(0)), ..query.clone() };
        let found = look(bound(walk, &rest, after, looked_at), &mut *connection).await?;
        let last = found.ids.last().copied();
        ids.extend(found.ids.into_iter().map(EventId::Uuid));
        if ids.len() >= query.limit as usize {
            return Ok((ids, last));
        }
        if found.looked_at < looked_at {
            return Ok((ids, None));
        }
        after = found.last_id;
    }
    Ok((ids, after))
}

/// Statements that are good where they find few rows, the narrowest first.
fn few<'q>(statements: &'q Statements, query: &EventQuery) -> Vec<Statement<'q>> {
    let mut ways = Vec::new();
    if query.subject.is_some() {
        ways.push(statements.find_events_subject());
    }
    match (query.is_live(), query.is_dead(), query.types.is_empty()) {
        (true, _, true) => ways.push(statements.find_events_live()),
        (true, _, false) => ways.push(statements.find_events_live_of_types()),
        (_, true, true) => ways.push(statements.find_events_dead()),
        (_, true, false) => ways.push(statements.find_events_dead_of_types()),
        (false, false, _) => {}
    }
    ways
}

fn bound<'q>(statement: Statement<'q>, query: &EventQuery, after: Option<Uuid>, looked_at: i64) -> Statement<'q> {
    let statuses: Vec<&'static str> = query.statuses.iter().map(|status| status.as_str()).collect();
    let instant = |at: Option<Timestamp>| -> Option<OffsetDateTime> { at.map(date_time) };
    let mut types = query.types.clone();
    types.sort_unstable();
    types.dedup();
    statement
        .bind(statuses)
        .bind(types)
        .bind(query.subject.clone())
        .bind(instant(query.created_after))
        .bind(instant(query.created_before))
        .bind(after)
        .bind(query.rising)
        .bind(i64::from(query.limit))
        .bind(looked_at)
}

/// What one look has found.
struct Found {
    ids: Vec<Uuid>,
    looked_at: i64,
    last_id: Option<Uuid>,
}

async fn look(statement: Statement<'_>, connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let row = statement.fetch_one(connection).await?;
    Ok(Found { ids: row.try_get("ids")?, looked_at: row.try_get("looked_at")?, last_id: row.try_get("last_id")? })
}

/// These events in the order of their ids as given; those that are gone are left out.
async fn read(
    statements: &Statements,
    ids: &[EventId],
    with_payload: bool,
    connection: &mut PgConnection,
) -> Result<Vec<Event>, sqlx::Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let uuids: Vec<Uuid> = ids.iter().filter_map(EventId::uuid).collect();
    let rows = statements.read_many().bind(uuids).bind(with_payload).fetch_all(connection).await?;
    let events = rows.iter().map(event_with_payload).collect::<Result<Vec<Event>, _>>()?;
    let mut by_id: HashMap<EventId, Event> = events.into_iter().map(|event| (event.id.clone(), event)).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}
