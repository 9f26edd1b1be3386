//! Finding and claiming in an adopted table.

use std::collections::BTreeSet;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::AdoptedStore;
use super::rows::{claimed, id, instant, text};
use super::statements::Statements;
use crate::event::EventId;
use crate::lease::ClaimedEvent;
use crate::store::{Claim, LaneFront, Peek, Position, StoreError};
use crate::timestamp::Timestamp;

/// What was claimed, and what became a dead letter instead, with the reason.
#[derive(Default)]
struct Picked {
    events: Vec<ClaimedEvent>,
    buried: Vec<(EventId, String)>,
}

impl AdoptedStore {
    /// The lanes with something pending or expired. Rows that nobody could ever claim are buried on the way.
    pub(super) async fn find_lanes(&self, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError> {
        let after = after.map(str::to_owned);
        let (fronts, has_unreadable) =
            self.read(move |statements, connection| Box::pin(look(statements, after, limit, connection))).await?;
        if has_unreadable {
            self.bury_unreadable().await?;
        }
        Ok(fronts)
    }

    async fn bury_unreadable(&self) -> Result<(), StoreError> {
        let buried = self
            .call(|statements, connection| {
                Box::pin(async move {
                    let rows = statements.bury_unreadable().fetch_all(connection).await?;
                    let pair =
                        |row: &SqliteRow| Ok((id(row, 0)?, row.try_get::<Option<String>, _>(1)?.unwrap_or_default()));
                    rows.iter().map(pair).collect::<Result<Vec<_>, sqlx::Error>>()
                })
            })
            .await?;
        self.say_buried(buried);
        Ok(())
    }

    fn say_buried(&self, buried: Vec<(EventId, String)>) {
        for (event_id, why) in buried {
            tracing::warn!(%event_id, outbox = self.name(), why, "an event that cannot be delivered has become a dead letter");
        }
    }

    /// Claims from lanes, or one subject's events.
    pub(super) async fn claim_events(&self, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> {
        let claim = claim.clone();
        let max_payload_bytes = self.max_payload_bytes();
        let picked = self
            .call(move |statements, connection| {
                Box::pin(async move {
                    let mut rows = Vec::new();
                    if let Some(confined) = &claim.subject {
                        let query =
                            statements.claim_subject().bind(lanes_as_json(&claim)).bind(confined.subject.clone());
                        let query = query.bind(max_payload_bytes).bind(confined.limit);
                        rows = query.fetch_all(&mut *connection).await?;
                    } else {
                        for lane in &claim.lanes {
                            let query = statements.claim_lane().bind(lane.event_type.clone()).bind(lane.limit);
                            rows.extend(query.bind(max_payload_bytes).fetch_all(&mut *connection).await?);
                        }
                    }
                    sort_out(statements, &rows, connection).await
                })
            })
            .await?;
        self.say_buried(picked.buried);
        Ok(picked.events)
    }

    /// Claims one event.
    pub(super) async fn claim_one(&self, id: &EventId) -> Result<Option<ClaimedEvent>, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(None) };
        let max_payload_bytes = self.max_payload_bytes();
        let mut picked = self
            .call(move |statements, connection| {
                Box::pin(async move {
                    let query = statements.claim_by_id().bind(id).bind(None::<i64>).bind(max_payload_bytes);
                    let rows = query.fetch_all(&mut *connection).await?;
                    sort_out(statements, &rows, connection).await
                })
            })
            .await?;
        self.say_buried(picked.buried);
        Ok(picked.events.pop())
    }

    /// Whether this event is pending and due.
    pub(super) async fn ask_due(&self, id: &EventId) -> Result<bool, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(false) };
        self.read(|statements, connection| {
            Box::pin(async move { statements.is_due().bind(id).fetch_one(connection).await?.try_get(0) })
        })
        .await
    }

    /// Whether there is something to claim.
    pub(super) async fn peek_lanes(&self, claim: &Claim) -> Result<Peek, StoreError> {
        let claim = claim.clone();
        self.read(move |statements, connection| {
            Box::pin(async move {
                let subject = claim.subject.as_ref().map(|confined| confined.subject.as_str());
                let mut all = Peek::default();
                for lane in &claim.lanes {
                    let peek = front(statements, &lane.event_type, subject, connection).await?;
                    all.claimable |= peek.claimable;
                    all.next_due_at = all.next_due_at.into_iter().chain(peek.next_due_at).min();
                }
                Ok(all)
            })
        })
        .await
    }
}

fn types(rows: &[SqliteRow]) -> Result<BTreeSet<String>, sqlx::Error> {
    let found = rows.iter().map(|row| text(row, 0)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn lanes_as_json(claim: &Claim) -> String {
    let types: Vec<&str> = claim.lanes.iter().map(|lane| lane.event_type.as_str()).collect();
    serde_json::json!(types).to_string()
}

/// The lanes behind `after`, and whether there are rows that nobody could ever claim.
async fn look(
    statements: &Statements,
    after: Option<String>,
    limit: u32,
    connection: &mut SqliteConnection,
) -> Result<(Vec<LaneFront>, bool), sqlx::Error> {
    let mut has_unreadable: bool = statements.unreadable().fetch_one(&mut *connection).await?.try_get(0)?;
    let expired = types(&statements.expired_types().fetch_all(&mut *connection).await?)?;
    let mut lanes = types(&statements.find_lanes().fetch_all(&mut *connection).await?)?;
    lanes.extend(expired.iter().cloned());
    let behind = lanes.into_iter().filter(|lane| after.as_ref().is_none_or(|after| lane > after));
    let mut fronts = Vec::new();
    for event_type in behind.take(limit as usize) {
        let row = statements.front().bind(event_type.clone()).fetch_one(&mut *connection).await?;
        has_unreadable |= row.try_get::<bool, _>(2)?;
        let peek = peeked(&row)?;
        // No scan position is used: any says that there is something to claim.
        let somewhere = || Position { available_at: Timestamp::from_micros(0), id: EventId::from_text("") };
        fronts.push(LaneFront {
            claimable: peek.claimable.then(somewhere),
            claimed_at_front: expired.contains(&event_type),
            next_due_at: peek.next_due_at,
            event_type,
        });
    }
    Ok((fronts, has_unreadable))
}

fn peeked(row: &SqliteRow) -> Result<Peek, sqlx::Error> {
    Ok(Peek { claimable: row.try_get(0)?, next_due_at: instant(row, 1)? })
}

/// What stands at the front of one lane, or of one subject's part of it.
async fn front(
    statements: &Statements,
    event_type: &str,
    subject: Option<&str>,
    connection: &mut SqliteConnection,
) -> Result<Peek, sqlx::Error> {
    let query = match subject {
        None => statements.front().bind(event_type.to_owned()),
        Some(subject) => statements.front_of_subject().bind(event_type.to_owned()).bind(subject.to_owned()),
    };
    peeked(&query.fetch_one(connection).await?)
}

/// Buries what has been claimed and can never be delivered, in the same transaction.
async fn sort_out(
    statements: &Statements,
    rows: &[SqliteRow],
    connection: &mut SqliteConnection,
) -> Result<Picked, sqlx::Error> {
    let mut picked = Picked::default();
    for row in rows {
        let (event, why) = claimed(row, &statements.payload_column)?;
        let Some(why) = why else {
            picked.events.push(event);
            continue;
        };
        let lease = event.lease;
        let query = statements.bury_claimed().bind(lease.event_id.to_string()).bind(lease.claim_no).bind(why.clone());
        query.execute(&mut *connection).await?;
        picked.buried.push((lease.event_id, why));
    }
    Ok(picked)
}
