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
        let reaped: Vec<Reaped> = self
            .call(move |statements, connection| {
                Box::pin(async move {
                    let rows = statements.reap().bind(types).bind(page).fetch_all(connection).await?;
                    rows.iter().map(reaped).collect()
                })
            })
            .await?;
        let is_full = u32::try_from(reaped.len()).is_ok_and(|count| count >= page);
        Ok(ReapPage { unfinished: if is_full { lanes.to_vec() } else { Vec::new() }, reaped })
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
