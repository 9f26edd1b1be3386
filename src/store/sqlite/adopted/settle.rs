//! Settling in an adopted table, extending leases, and taking back expired ones.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::AdoptedStore;
use super::rows::{id, status, text};
use crate::event::{EventId, Status};
use crate::lease::Lease;
use crate::outcome::Settlement;
use crate::store::written::Written;
use crate::store::{ReapLane, ReapPage, Reaped, StoreError, micros};

/// Expired claims that are taken back one by one, where all at once was refused.
const MOST_ONE_BY_ONE: u32 = 1_000;

impl AdoptedStore {
    /// Writes all settlements in one transaction.
    pub(super) async fn settle_all(&self, settlements: &[Settlement]) -> Result<Vec<Lease>, StoreError> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let settlements = settlements.to_vec();
        self.call(move |statements, connection| {
            Box::pin(async move {
                let mut applied = Vec::new();
                for Settlement { lease, change, .. } in settlements {
                    let Written { status, spent, delay, after_lease, error } = Written::of(&change);
                    let is_lacking = status == Status::Skipped && !statements.has_skipped;
                    let status = if is_lacking { Status::Completed } else { status };
                    let query = statements
                        .settle()
                        .bind(lease.event_id.to_string())
                        .bind(lease.claim_no)
                        .bind(status.as_str())
                        .bind(spent)
                        .bind(delay)
                        .bind(after_lease)
                        .bind(error.cloned());
                    if query.execute(&mut *connection).await?.rows_affected() > 0 {
                        applied.push(lease);
                    }
                }
                Ok(applied)
            })
        })
        .await
    }

    /// Moves the end of a lease.
    pub(super) async fn extend_lease(&self, old: &Lease, duration: Duration) -> Result<Option<Lease>, StoreError> {
        let Some(id) = self.known_id(&old.event_id).await? else { return Ok(None) };
        let old = old.clone();
        self.call(move |statements, connection| {
            Box::pin(async move {
                let query = statements.extend().bind(id).bind(old.claim_no).bind(micros(duration));
                let Some(row) = query.fetch_optional(connection).await? else { return Ok(None) };
                Ok(Some(Lease { event_id: old.event_id, claim_no: row.try_get(0)? }))
            })
        })
        .await
    }

    /// Takes back expired claims of these types.
    pub(super) async fn reap_lanes(&self, lanes: &[ReapLane], page: u32) -> Result<ReapPage, StoreError> {
        let types: Vec<&str> = lanes.iter().map(|lane| lane.event_type.as_str()).collect();
        let types = serde_json::json!(types).to_string();
        let asked = types.clone();
        let taken: Result<Vec<Reaped>, StoreError> = self
            .call(move |statements, connection| {
                Box::pin(async move {
                    let rows = statements.reap().bind(asked).bind(page).fetch_all(connection).await?;
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
    async fn reap_each(&self, types: String) -> Result<Vec<Reaped>, StoreError> {
        let expired: Vec<EventId> = self
            .read(move |statements, connection| {
                Box::pin(async move {
                    let rows = statements.expired().bind(types).bind(MOST_ONE_BY_ONE).fetch_all(connection).await?;
                    rows.iter().map(|row| id(row, 0)).collect()
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
        self.call(move |statements, connection| {
            Box::pin(async move {
                let row = statements.reap_by_id().bind(id).fetch_optional(connection).await?;
                row.as_ref().map(reaped).transpose()
            })
        })
        .await
    }
}

fn reaped(row: &SqliteRow) -> Result<Reaped, sqlx::Error> {
    Ok(Reaped { event_id: id(row, 0)?, event_type: text(row, 1)?.unwrap_or_default(), status: status(row, 2)? })
}
