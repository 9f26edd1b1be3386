//! Settling in an adopted table, extending leases, and taking back expired ones.

use std::time::Duration;

use sqlx::Row;

use super::AdoptedStore;
use super::rows::{id, lease, status};
use crate::event::EventId;
use crate::lease::Lease;
use crate::outcome::Settlement;
use crate::store::postgres::settle::latest_by_id;
use crate::store::written::Written;
use crate::store::{ReapLane, ReapPage, Reaped, StoreError, micros};

/// Expired claims that are taken back one by one, where all at once was refused.
const MOST_ONE_BY_ONE: i64 = 1_000;

/// Settlements as the statement takes them: one array per field.
#[derive(Default)]
struct Arrays {
    ids: Vec<String>,
    fences: Vec<i64>,
    statuses: Vec<&'static str>,
    spent: Vec<i32>,
    delays: Vec<Option<i64>>,
    after_lease: Vec<bool>,
    errors: Vec<Option<String>>,
}

impl Arrays {
    fn push(&mut self, settlement: &Settlement) {
        let Written { status, spent, delay, after_lease, error } = Written::of(&settlement.change);
        self.ids.push(settlement.lease.event_id.to_string());
        self.fences.push(settlement.lease.claim_no);
        self.statuses.push(status.as_str());
        self.spent.push(spent);
        self.delays.push(delay);
        self.after_lease.push(after_lease);
        self.errors.push(error.cloned());
    }
}

impl AdoptedStore {
    /// Writes all settlements in one statement.
    pub(super) async fn settle_all(&self, settlements: &[Settlement]) -> Result<Vec<Lease>, StoreError> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let mut arrays = Arrays::default();
        for settlement in latest_by_id(settlements) {
            arrays.push(settlement);
        }
        self.call(arrays, |statements, arrays, connection| {
            Box::pin(async move {
                let query = statements
                    .settle()
                    .bind(&arrays.ids)
                    .bind(&arrays.fences)
                    .bind(&arrays.statuses)
                    .bind(&arrays.spent)
                    .bind(&arrays.delays)
                    .bind(&arrays.after_lease)
                    .bind(&arrays.errors);
                query.fetch_all(connection).await?.iter().map(lease).collect()
            })
        })
        .await
    }

    /// Moves the end of a lease.
    pub(super) async fn extend_lease(&self, old: &Lease, duration: Duration) -> Result<Option<Lease>, StoreError> {
        let Some(event_id) = self.known_id(&old.event_id).await? else { return Ok(None) };
        self.call((event_id, old.claim_no, micros(duration)), |statements, (id, fence, duration), connection| {
            Box::pin(async move {
                let query = statements.extend().bind(id).bind(fence).bind(duration);
                query.fetch_optional(connection).await?.as_ref().map(lease).transpose()
            })
        })
        .await
    }

    /// Takes back expired claims of these types.
    pub(super) async fn reap_lanes(&self, lanes: &[ReapLane], page: u32) -> Result<ReapPage, StoreError> {
        let types: Vec<String> = lanes.iter().map(|lane| lane.event_type.clone()).collect();
        let taken: Result<Vec<Reaped>, StoreError> = self
            .call((types.clone(), i64::from(page)), |statements, (types, page), connection| {
                Box::pin(async move {
                    let rows = statements.reap().bind(types).bind(page).fetch_all(connection).await?;
                    rows.iter().map(reaped).collect()
                })
            })
            .await;
        let reaped = match taken {
            // A row that the application's own rules do not let go must not hold the others.
            Err(StoreError::Data { .. }) => self.reap_each(types).await?,
            taken => taken?,
        };
        let is_full = u32::try_from(reaped.len()).is_ok_and(|count| count >= page);
        Ok(ReapPage { unfinished: if is_full { lanes.to_vec() } else { Vec::new() }, reaped })
    }

    /// Takes back expired claims of these types one by one, and says which the table refuses to let go.
    async fn reap_each(&self, types: Vec<String>) -> Result<Vec<Reaped>, StoreError> {
        let expired: Vec<EventId> = self
            .read(types, |statements, types, connection| {
                Box::pin(async move {
                    let rows = statements.expired().bind(types).bind(MOST_ONE_BY_ONE).fetch_all(connection).await?;
                    rows.iter().map(id).collect()
                })
            })
            .await?;
        let mut reaped = Vec::new();
        for event_id in expired {
            match self.reap_one(&event_id).await {
                Ok(taken) => reaped.extend(taken),
                Err(StoreError::Data { reason, .. }) => {
                    let outbox = self.name();
                    tracing::error!(outbox, %event_id, reason, "an expired claim cannot be taken back: the table refuses the change");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(reaped)
    }

    /// Takes back this event's claim if it has expired.
    pub(super) async fn reap_one(&self, id: &EventId) -> Result<Option<Reaped>, StoreError> {
        let Some(id) = self.known_id(id).await? else { return Ok(None) };
        self.call(id, |statements, id, connection| {
            Box::pin(async move {
                let row = statements.reap_by_id().bind(id).fetch_optional(connection).await?;
                row.as_ref().map(reaped).transpose()
            })
        })
        .await
    }
}

fn reaped(row: &sqlx::postgres::PgRow) -> Result<Reaped, sqlx::Error> {
    let event_type: Option<String> = row.try_get("event_type")?;
    Ok(Reaped { event_id: id(row)?, event_type: event_type.unwrap_or_default(), status: status(row)? })
}
