//! Finding and claiming in an adopted table.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use sqlx::Connection;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use super::rows::{claimed, id, text};
use super::statements::Statements;
use super::{AdoptedStore, PayloadKind};
use crate::event::EventId;
use crate::lease::ClaimedEvent;
use crate::store::postgres::rows::optional_instant;
use crate::store::{Claim, LaneClaim, LaneFront, Peek, Position, StoreError};
use crate::timestamp::Timestamp;

/// Lanes that are claimed from one by one; more of them in one statement.
const FEW_LANES: usize = 16;

impl AdoptedStore {
    /// The lanes with something pending or expired. Rows that nobody could ever claim are buried on the way.
    pub(super) async fn find_lanes(&self, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError> {
        if self.statements().await?.has_unreadable {
            match self.bury_unreadable().await {
                Err(StoreError::Data { reason, .. }) => {
                    let outbox = self.name();
                    tracing::error!(
                        outbox,
                        reason,
                        "events without a type or a due time cannot become dead letters: the table refuses it"
                    );
                }
                buried => buried?,
            }
        }
        let fronts = self
            .read((), |statements, (), connection| {
                Box::pin(async move {
                    let mut fronts: BTreeMap<String, LaneFront> = BTreeMap::new();
                    for row in statements.survey().fetch_all(&mut *connection).await? {
                        let event_type: String = row.try_get("event_type")?;
                        // No scan position is used: any says that there is something to claim.
                        let somewhere =
                            || Position { available_at: Timestamp::from_micros(0), id: EventId::from_text("") };
                        let front = LaneFront {
                            claimable: row.try_get::<bool, _>("claimable")?.then(somewhere),
                            claimed_at_front: false,
                            next_due_at: optional_instant(&row, "next_due_at")?,
                            event_type: event_type.clone(),
                        };
                        fronts.insert(event_type, front);
                    }
                    for row in statements.expired_types().fetch_all(connection).await? {
                        let Some(event_type) = row.try_get::<Option<String>, _>("event_type")? else { continue };
                        let front = fronts.entry(event_type.clone()).or_insert_with(|| LaneFront {
                            event_type,
                            claimed_at_front: true,
                            claimable: None,
                            next_due_at: None,
                        });
                        front.claimed_at_front = true;
                    }
                    Ok(fronts)
                })
            })
            .await?;
        let behind = fronts.into_values().filter(|front| after.is_none_or(|after| front.event_type.as_str() > after));
        Ok(behind.take(limit as usize).collect())
    }

    async fn bury_unreadable(&self) -> Result<(), StoreError> {
        let buried = self
            .call((), |statements, (), connection| {
                Box::pin(
                    async move { statements.bury_unreadable().fetch_all(connection).await?.iter().map(id).collect() },
                )
            })
            .await;
        let buried: Vec<EventId> = buried?;
        for event_id in buried {
            tracing::warn!(%event_id, outbox = self.name(), "an event without a type or a due time has become a dead letter");
        }
        Ok(())
    }

    /// Claims from lanes, or one subject's events.
    pub(super) async fn claim_events(&self, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> {
        self.call(claim.clone(), |statements, claim, connection| {
            Box::pin(async move {
                let rows = match &claim.subject {
                    None if claim.lanes.len() <= FEW_LANES => {
                        lane_by_lane(statements, &claim.lanes, connection).await?
                    }
                    None => {
                        let (types, limits): (Vec<&str>, Vec<i32>) = claim.lanes.iter().map(part).unzip();
                        statements.claim().bind(types).bind(limits).fetch_all(&mut *connection).await?
                    }
                    Some(confined) => {
                        let types: Vec<&str> = claim.lanes.iter().map(|lane| lane.event_type.as_str()).collect();
                        let query = statements.claim_subject().bind(types).bind(&confined.subject);
                        query.bind(i64::from(confined.limit)).fetch_all(&mut *connection).await?
                    }
                };
                let events = rows.iter().map(claimed).collect::<Result<Vec<_>, _>>()?;
                with_payloads(statements, events, connection).await
            })
        })
        .await
    }

    /// Claims one event.
    pub(super) async fn claim_one(&self, id: &EventId) -> Result<Option<ClaimedEvent>, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(None) };
        self.call(id, |statements, id, connection| {
            Box::pin(async move {
                let row = statements.claim_by_id().bind(id).fetch_optional(&mut *connection).await?;
                let events = row.iter().map(claimed).collect::<Result<Vec<_>, _>>()?;
                Ok(with_payloads(statements, events, connection).await?.pop())
            })
        })
        .await
    }

    /// Whether this event is pending and due.
    pub(super) async fn ask_due(&self, id: &EventId) -> Result<bool, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(false) };
        self.read(id, |statements, id, connection| {
            Box::pin(async move { statements.is_due().bind(id).fetch_one(connection).await?.try_get(0) })
        })
        .await
    }

    /// Whether there is something to claim.
    pub(super) async fn peek_lanes(&self, claim: &Claim) -> Result<Peek, StoreError> {
        self.read(claim.clone(), |statements, claim, connection| {
            Box::pin(async move {
                let types: Vec<&str> = claim.lanes.iter().map(|lane| lane.event_type.as_str()).collect();
                let query = match &claim.subject {
                    None => statements.peek().bind(types),
                    Some(confined) => statements.peek_subject().bind(types).bind(&confined.subject),
                };
                let row = query.fetch_one(connection).await?;
                Ok(Peek { claimable: row.try_get("claimable")?, next_due_at: optional_instant(&row, "next_due_at")? })
            })
        })
        .await
    }
}

/// A lane as statements take it.
fn part(lane: &LaneClaim) -> (&str, i32) {
    (&lane.event_type, i32::try_from(lane.limit).unwrap_or(i32::MAX))
}

/// Claims from each lane by a statement of its own, all or none.
async fn lane_by_lane(
    statements: &Statements,
    lanes: &[LaneClaim],
    connection: &mut PgConnection,
) -> Result<Vec<PgRow>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let mut rows = Vec::new();
    for lane in lanes {
        let (event_type, limit) = part(lane);
        rows.extend(
            statements.claim_lane().bind(event_type).bind(i64::from(limit)).fetch_all(&mut *transaction).await?,
        );
    }
    transaction.commit().await?;
    Ok(rows)
}

/// Reads the payloads that the claim has left out: all at once and, where that fails, one by one, so that a value that
/// cannot be written out fails its own event alone.
async fn with_payloads(
    statements: &Statements,
    mut events: Vec<ClaimedEvent>,
    connection: &mut PgConnection,
) -> Result<Vec<ClaimedEvent>, sqlx::Error> {
    match statements.payload_kind {
        PayloadKind::Json => return Ok(events),
        PayloadKind::Text | PayloadKind::Bytes => {
            // The column would hold anything; what is no JSON is not delivered.
            for event in &mut events {
                event.payload = event.payload.take().filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
            }
            return Ok(events);
        }
        PayloadKind::JsonB => {}
    }
    if events.is_empty() {
        return Ok(events);
    }
    let ids: Vec<String> = events.iter().map(|event| event.lease.event_id.to_string()).collect();
    let mut found = BTreeMap::new();
    match payloads(statements, &ids, &mut found, connection).await {
        Err(error) if is_of_a_value(&error) => {
            for id in &ids {
                match payloads(statements, std::slice::from_ref(id), &mut found, connection).await {
                    Err(error) if is_of_a_value(&error) => {
                        tracing::warn!(event_id = id, "a payload cannot be read back");
                    }
                    read => read?,
                }
            }
        }
        read => read?,
    }
    for event in &mut events {
        if let Some((payload, bytes)) = found.remove(&event.lease.event_id.to_string()) {
            event.payload = payload;
            event.payload_bytes = bytes;
        }
    }
    Ok(events)
}

async fn payloads(
    statements: &Statements,
    ids: &[String],
    found: &mut BTreeMap<String, (Option<String>, i64)>,
    connection: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let rows = fetch_values(statements, statements.payloads().bind(ids), connection).await?;
    for row in rows {
        let bytes: Option<i32> = row.try_get("payload_bytes")?;
        found.insert(id(&row)?.to_string(), (text(row.try_get("payload")?), i64::from(bytes.unwrap_or(0))));
    }
    Ok(())
}

/// Runs a query that a value may make fail. Behind a pooler the call is one transaction, which that must not end.
pub(super) async fn fetch_values(
    statements: &Statements,
    query: Query<'_, Postgres, PgArguments>,
    connection: &mut PgConnection,
) -> Result<Vec<PgRow>, sqlx::Error> {
    if !statements.pooled() {
        return query.fetch_all(connection).await;
    }
    let mut savepoint = connection.begin().await?;
    let rows = query.fetch_all(&mut *savepoint).await?;
    savepoint.commit().await?;
    Ok(rows)
}

/// Whether the server could not write a value out: for lack of memory, or because of what it holds.
pub(super) fn is_of_a_value(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code).unwrap_or_default();
    code == "53200" || code.starts_with("22") || code.starts_with("54") || code.starts_with("XX")
}

/// Whether the server refuses what the statement says, whatever it is asked for: syntax, names, types, values in it.
pub(super) fn is_of_the_statement(code: Option<&str>) -> bool {
    code.is_some_and(|code| code.starts_with("42") && code != "42501" || code.starts_with("22"))
}
