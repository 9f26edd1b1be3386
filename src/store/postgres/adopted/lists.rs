//! Lists of an adopted table's events, and many dead letters at once. The list of events is ordered by what never changes: the
//! instant of creation where an index leads along it, else the id.

use std::collections::HashMap;

use sqlx::Postgres;
use sqlx::Row;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use time::OffsetDateTime;

use super::AdoptedStore;
use super::fit::Fit;
use super::operate::shown;
use super::rows::{event_with_payload, id};
use super::statements::Statements;
use crate::event::{Event, EventId};
use crate::store::postgres::rows::{action, date_time, instant};
use crate::store::table::Table;
use crate::store::{
    Action, Actor, BulkChange, DeadLetterFilter, DeadLetterIds, DeadLetterPosition, EventPage, EventPosition,
    EventQuery, StoreError, micros,
};
use crate::timestamp::Timestamp;

/// Rows that one page looks at.
const LOOKED_AT: i64 = 10_000;
/// What the first try looks at, for each event that is wanted: most filters let many pass.
const FIRST_LOOK: i64 = 10;

/// The order of the list of events, which never changes, and the place behind which a page begins: `$6` and `$7`.
pub(super) fn list_names(fit: &Fit<'_>, table: Table) -> Table {
    let (falling, rising, columns, place) = if fit.has_creation_index() {
        let place = "($6::timestamptz {created_at_zone}, $7::text::{id_type})";
        ("e.{created_at} DESC, e.{id} DESC", "e.{created_at}, e.{id}", "(e.{created_at}, e.{id})", place)
    } else {
        ("e.{id} DESC", "e.{id}", "e.{id}", "$7::text::{id_type} AND $6::timestamptz IS NOT NULL")
    };
    let behind = |sign: &str| table.render(&format!("($7::text IS NULL OR {columns} {sign} {place})"));
    let (below, above) = (behind("<"), behind(">"));
    let (falling, rising) = (table.render(falling), table.render(rising));
    let table = table.with("falling", falling).with("rising", rising);
    let seen = |behind: String, order: &str| {
        let table = table.clone().with("behind", behind).with("order", table.render(order));
        table.render(include_str!("sql/seen_events.sql").trim_end())
    };
    let (seen_falling, seen_rising) = (seen(below, "{falling}"), seen(above, "{rising}"));
    table.with("seen_falling", seen_falling).with("seen_rising", seen_rising)
}

impl AdoptedStore {
    /// What operators did to the event.
    pub(super) async fn read_actions(&self, id: &EventId) -> Result<Vec<Action>, StoreError> {
        self.read(id.to_string(), |statements, id, connection| {
            Box::pin(async move {
                let query = statements.actions().bind(id);
                query.fetch_all(connection).await?.iter().map(action).collect()
            })
        })
        .await
    }

    /// A page of events.
    pub(super) async fn list_events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        if let Some(after) = &query.after
            && self.known_id(&after.id).await?.is_none()
        {
            // A place that no row of this table can have.
            return Ok(EventPage::default());
        }
        let page = self
            .read(query.clone(), |statements, query, connection| {
                Box::pin(async move {
                    let (ids, next) = walk(statements, query, &mut *connection).await?;
                    let mut events = read(statements, &ids, query.with_payload, connection).await?;
                    // What has changed since it was found.
                    events.retain(|event| query.wants(event.status));
                    Ok(EventPage { events, next })
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
        self.read((filter.clone(), after, limit), |statements, (filter, after, limit), connection| {
            Box::pin(async move {
                let instant = |at: Option<Timestamp>| -> Option<OffsetDateTime> { at.map(date_time) };
                let query = statements
                    .find_dead()
                    .bind(&filter.types)
                    .bind(&filter.subject)
                    .bind(&filter.error_contains)
                    .bind(instant(filter.dead_after))
                    .bind(instant(filter.dead_before))
                    .bind(after)
                    .bind(i64::from(*limit))
                    .bind(LOOKED_AT);
                let mut found = DeadLetterIds::default();
                // Here the id is the whole order.
                let place = |id| DeadLetterPosition { dead_at: Timestamp::from_micros(0), id };
                for row in &query.fetch_all(connection).await? {
                    if row.try_get("matches")? {
                        found.ids.push(id(row)?);
                    } else {
                        found.next = Some(place(id(row)?));
                    }
                }
                if found.ids.len() >= *limit as usize {
                    found.next = found.ids.last().cloned().map(place);
                }
                Ok(found)
            })
        })
        .await
    }

    /// Which of these are dead letters.
    pub(super) async fn find_dead_among(&self, ids: &[EventId]) -> Result<Vec<EventId>, StoreError> {
        let ids = self.known_ids(ids).await?;
        self.read(ids, |statements, ids, connection| {
            Box::pin(
                async move { statements.dead_among().bind(ids).fetch_all(connection).await?.iter().map(id).collect() },
            )
        })
        .await
    }

    /// Changes those that are dead letters.
    pub(super) async fn change_dead(
        &self,
        ids: &[EventId],
        change: &BulkChange,
        by: &Actor,
    ) -> Result<Vec<EventId>, StoreError> {
        if matches!(change, BulkChange::Discard { .. }) && !self.statements().await?.has_skipped {
            return Err(self.refused("its table has no label for skipped events"));
        }
        let ids = self.known_ids(ids).await?;
        self.call((ids, change.clone(), by.clone()), |statements, (ids, change, by), connection| {
            Box::pin(async move {
                let query = match change {
                    BulkChange::Requeue { spread } => {
                        statements.requeue_many().bind(ids).bind(micros(*spread)).bind(None::<i32>)
                    }
                    BulkChange::Discard { reason } => statements.discard_many().bind(ids).bind(reason),
                };
                query.bind(&by.name).bind(&by.note).fetch_all(connection).await?.iter().map(id).collect()
            })
        })
        .await
    }

    /// Those ids that rows of this table can have, as statements take them.
    async fn known_ids(&self, ids: &[EventId]) -> Result<Vec<String>, StoreError> {
        let mut known = Vec::with_capacity(ids.len());
        for id in ids {
            known.extend(self.known_id(id).await?);
        }
        Ok(known)
    }
}

/// Ids in order, and where the next page goes on.
async fn walk(
    statements: &Statements,
    query: &EventQuery,
    connection: &mut PgConnection,
) -> Result<(Vec<EventId>, Option<EventPosition>), sqlx::Error> {
    let limit = i64::from(query.limit);
    let mut after = query.after.clone();
    let mut ids: Vec<EventId> = Vec::new();
    let first = if query.is_unfiltered() { limit + 1 } else { limit * FIRST_LOOK };
    for looked_at in [first.min(LOOKED_AT), LOOKED_AT] {
        let room = limit - i64::try_from(ids.len()).unwrap_or(limit);
        let statement = if query.rising { statements.events_rising() } else { statements.events() };
        let rows = bound(statement, query, after.as_ref(), room, looked_at).fetch_all(&mut *connection).await?;
        let (places, stop) = places(&rows)?;
        let last = places.last().cloned();
        ids.extend(places.into_iter().map(|place| place.id));
        if ids.len() >= query.limit as usize {
            return Ok((ids, last));
        }
        if stop.is_none() {
            return Ok((ids, None));
        }
        after = stop;
    }
    Ok((ids, after))
}

/// The places that match, in order, and where looking has stopped, if there may be more.
fn places(rows: &[PgRow]) -> Result<(Vec<EventPosition>, Option<EventPosition>), sqlx::Error> {
    let (mut places, mut stop) = (Vec::with_capacity(rows.len()), None);
    for row in rows {
        let position = EventPosition { created_at: instant(row, "created_at")?, id: id(row)? };
        if row.try_get("matches")? {
            places.push((row.try_get::<i64, _>("place")?, position));
        } else {
            stop = Some(position);
        }
    }
    places.sort_unstable_by_key(|(place, _)| *place);
    Ok((places.into_iter().map(|(_, position)| position).collect(), stop))
}

fn bound<'q>(
    statement: Query<'q, Postgres, PgArguments>,
    query: &EventQuery,
    after: Option<&EventPosition>,
    limit: i64,
    looked_at: i64,
) -> Query<'q, Postgres, PgArguments> {
    let statuses: Vec<&'static str> = query.statuses.iter().map(|status| status.as_str()).collect();
    let instant = |at: Option<Timestamp>| -> Option<OffsetDateTime> { at.map(date_time) };
    statement
        .bind(statuses)
        .bind(query.types.clone())
        .bind(query.subject.clone())
        .bind(instant(query.created_after))
        .bind(instant(query.created_before))
        .bind(instant(after.map(|after| after.created_at)))
        .bind(after.map(|after| after.id.to_string()))
        .bind(limit)
        .bind(looked_at)
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
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let query = |with_payload: bool| statements.read_many().bind(texts.clone()).bind(with_payload);
    let rows = shown(statements, with_payload, query, connection).await?;
    let events = rows.iter().map(event_with_payload).collect::<Result<Vec<Event>, _>>()?;
    let mut by_id: HashMap<EventId, Event> = events.into_iter().map(|event| (event.id.clone(), event)).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}
