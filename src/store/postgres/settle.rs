//! Settling: what came of claimed events, many at once, each under its own lease. And taking back expired leases.

use std::cmp::Reverse;
use std::time::Duration;

use sqlx::Row;
use uuid::Uuid;

use super::call::Caller;
use super::rows::{date_time, front, lease, timestamp};
use crate::event::{EventId, Status};
use crate::lease::Lease;
use crate::outcome::{Change, Settlement};
use crate::store::written::Written;
use crate::store::{Position, ReapLane, ReapPage, Reaped, StoreError, micros};

/// Settlements as the statement takes them: one array per field, in the order of the ids.
#[derive(Default)]
struct SettlementArrays {
    ids: Vec<Uuid>,
    claim_nos: Vec<i64>,
    statuses: Vec<&'static str>,
    spent: Vec<i32>,
    delays: Vec<Option<i64>>,
    after_lease: Vec<bool>,
    errors: Vec<Option<String>>,
    deferrals: Vec<&'static str>,
    numbers: Vec<Option<i32>>,
    durations: Vec<Option<i64>>,
    outcomes: Vec<Option<&'static str>>,
    status_codes: Vec<Option<i32>>,
    attempt_errors: Vec<Option<String>>,
    responses: Vec<Option<String>>,
}

impl SettlementArrays {
    fn push(&mut self, settlement: &Settlement) {
        let Written { status, spent, delay, after_lease, error } = Written::of(&settlement.change);
        let deferral = match &settlement.change {
            Change::Defer { .. } => "begin",
            Change::Release => "keep",
            Change::Complete | Change::Retry { .. } | Change::Skip { .. } | Change::DeadLetter { .. } => "clear",
        };
        self.ids.push(settlement.lease.event_id.uuid().unwrap_or_default());
        self.claim_nos.push(settlement.lease.claim_no);
        self.statuses.push(status.as_str());
        self.spent.push(spent);
        self.delays.push(delay);
        self.after_lease.push(after_lease);
        self.errors.push(error.cloned());
        self.deferrals.push(deferral);
        let line = settlement.attempt.as_ref();
        self.numbers.push(line.map(|line| line.number));
        self.durations.push(line.map(|line| i64::try_from(line.duration.as_millis()).unwrap_or(i64::MAX)));
        self.outcomes.push(line.map(|line| line.outcome));
        self.status_codes.push(line.and_then(|line| line.status_code).map(i32::from));
        self.attempt_errors.push(line.and_then(|line| line.error.clone()));
        self.responses.push(line.and_then(|line| line.response.clone()));
    }
}

/// Writes all settlements in one statement, so that a refused one leaves none of them half told.
pub(super) async fn settle(caller: &Caller, settlements: &[Settlement]) -> Result<Vec<Lease>, StoreError> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let settlements = latest_by_id(settlements);
    let is_plain = |settlement: &&Settlement| settlement.change == Change::Complete && settlement.attempt.is_none();
    if settlements.iter().all(is_plain) {
        return complete(caller, &settlements).await;
    }
    let mut arrays = SettlementArrays::default();
    for settlement in settlements {
        arrays.push(settlement);
    }
    settle_any(caller, arrays).await
}

/// In the order of the ids, so that no two instances wait for each other. Of several leases of one event only the latest
/// can be alive, and the statements look an event's lease up by its id.
pub(super) fn latest_by_id(settlements: &[Settlement]) -> Vec<&Settlement> {
    fn key(settlement: &Settlement) -> (&EventId, Reverse<i64>) {
        (&settlement.lease.event_id, Reverse(settlement.lease.claim_no))
    }
    let mut latest: Vec<&Settlement> = settlements.iter().collect();
    latest.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
    latest.dedup_by(|later, earlier| later.lease.event_id == earlier.lease.event_id);
    latest
}

async fn complete(caller: &Caller, settlements: &[&Settlement]) -> Result<Vec<Lease>, StoreError> {
    let leases = || settlements.iter().map(|settlement| &settlement.lease);
    let ids: Vec<Uuid> = leases().map(|lease| lease.event_id.uuid().unwrap_or_default()).collect();
    let claim_nos: Vec<i64> = leases().map(|lease| lease.claim_no).collect();
    caller
        .call((ids, claim_nos), |statements, (ids, claim_nos), connection| {
            Box::pin(async move {
                let query = statements.complete().bind(ids).bind(claim_nos);
                query.fetch_all(connection).await?.iter().map(lease).collect()
            })
        })
        .await
}

async fn settle_any(caller: &Caller, arrays: SettlementArrays) -> Result<Vec<Lease>, StoreError> {
    caller
        .call(arrays, |statements, arrays, connection| {
            Box::pin(async move {
                let query = statements
                    .settle()
                    .bind(&arrays.ids)
                    .bind(&arrays.claim_nos)
                    .bind(&arrays.statuses)
                    .bind(&arrays.spent)
                    .bind(&arrays.delays)
                    .bind(&arrays.after_lease)
                    .bind(&arrays.errors)
                    .bind(&arrays.deferrals)
                    .bind(&arrays.numbers)
                    .bind(&arrays.durations)
                    .bind(&arrays.outcomes)
                    .bind(&arrays.status_codes)
                    .bind(&arrays.attempt_errors)
                    .bind(&arrays.responses);
                query.fetch_all(connection).await?.iter().map(lease).collect()
            })
        })
        .await
}

pub(super) async fn extend(caller: &Caller, lease: &Lease, duration: Duration) -> Result<Option<Lease>, StoreError> {
    caller
        .call((lease.clone(), micros(duration)), |statements, (lease, duration), connection| {
            Box::pin(async move {
                let query = statements.extend().bind(lease.event_id.uuid()).bind(lease.claim_no).bind(duration);
                Ok(query.fetch_optional(connection).await?.map(|_| lease.clone()))
            })
        })
        .await
}

pub(super) async fn reap(caller: &Caller, lanes: &[ReapLane], page: u32) -> Result<ReapPage, StoreError> {
    caller
        .call((lanes.to_vec(), i64::from(page)), |statements, (lanes, page), connection| {
            Box::pin(async move {
                let after = |lane: &ReapLane| lane.after.clone().unwrap_or_else(front);
                let types: Vec<&str> = lanes.iter().map(|lane| lane.event_type.as_str()).collect();
                let after_at: Vec<_> = lanes.iter().map(|lane| date_time(after(lane).available_at)).collect();
                let after_id: Vec<Uuid> = lanes.iter().map(|lane| after(lane).id.uuid().unwrap_or_default()).collect();
                let query = statements.reap().bind(types).bind(after_at).bind(after_id).bind(page);
                let mut result = ReapPage::default();
                for row in query.fetch_all(connection).await? {
                    let id = EventId::Uuid(row.try_get("id")?);
                    let event_type = row.try_get("event_type")?;
                    match row.try_get::<Option<time::OffsetDateTime>, _>("end_at")? {
                        None => result.reaped.push(Reaped { event_id: id, event_type, status: status(&row)? }),
                        Some(at) => result
                            .unfinished
                            .push(ReapLane { event_type, after: Some(Position { available_at: timestamp(at), id }) }),
                    }
                }
                Ok(result)
            })
        })
        .await
}

pub(super) async fn reap_by_id(caller: &Caller, id: Uuid) -> Result<Option<Reaped>, StoreError> {
    caller
        .call(id, |statements, id, connection| {
            Box::pin(async move {
                let query = statements.reap_by_id().bind(id);
                let row = query.fetch_optional(connection).await?;
                row.map(|row| {
                    let event_type = row.try_get("event_type")?;
                    Ok(Reaped { event_id: (*id).into(), event_type, status: status(&row)? })
                })
                .transpose()
            })
        })
        .await
}

fn status(row: &sqlx::postgres::PgRow) -> Result<Status, sqlx::Error> {
    let text: String = row.try_get("status")?;
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}
