//! Finding and claiming: survey, claim, peek.

use std::time::Duration;

use sqlx::Row;
use time::OffsetDateTime;
use uuid::Uuid;

use super::call::Caller;
use super::rows::{claimed, date_time, front, optional_instant};
use crate::lease::ClaimedEvent;
use crate::store::{Claim, LaneClaim, LaneFront, Peek, Position, StoreError, micros};

/// The lanes of a claim as statements take them: one array per field, in the order of the types, by which they are
/// searched.
struct LaneArrays {
    types: Vec<String>,
    limits: Vec<i32>,
    from_at: Vec<OffsetDateTime>,
    from_id: Vec<Uuid>,
    leases: Vec<i64>,
}

impl LaneArrays {
    fn new(lanes: &[LaneClaim]) -> Self {
        let mut lanes: Vec<&LaneClaim> = lanes.iter().collect();
        lanes.sort_unstable_by(|one, other| one.event_type.cmp(&other.event_type));
        let from = |lane: &LaneClaim| lane.from.clone().unwrap_or_else(front);
        Self {
            types: lanes.iter().map(|lane| lane.event_type.clone()).collect(),
            limits: lanes.iter().map(|lane| i32::try_from(lane.limit).unwrap_or(i32::MAX)).collect(),
            from_at: lanes.iter().map(|lane| date_time(from(lane).available_at)).collect(),
            from_id: lanes.iter().map(|lane| from(lane).id.uuid().unwrap_or_default()).collect(),
            leases: lanes.iter().map(|lane| micros(lane.lease)).collect(),
        }
    }
}

pub(super) async fn survey(caller: &Caller, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError> {
    let arguments = (after.unwrap_or_default().to_owned(), i64::from(limit));
    caller
        .read(arguments, |statements, (after, limit), connection| {
            Box::pin(async move {
                let query = statements.survey().bind(after).bind(limit);
                let rows = query.fetch_all(connection).await?;
                rows.iter()
                    .map(|row| {
                        let at = optional_instant(row, "claimable_at")?;
                        let id: Option<Uuid> = row.try_get("claimable_id")?;
                        Ok(LaneFront {
                            event_type: row.try_get("event_type")?,
                            claimed_at_front: row.try_get("claimed_at_front")?,
                            claimable: at.zip(id).map(|(available_at, id)| Position { available_at, id: id.into() }),
                            next_due_at: optional_instant(row, "next_due_at")?,
                        })
                    })
                    .collect()
            })
        })
        .await
}

pub(super) async fn claim(caller: &Caller, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> {
    let lanes = LaneArrays::new(&claim.lanes);
    let Some(subject) = claim.subject.clone() else {
        return claim_lanes(caller, lanes).await;
    };
    caller
        .call((lanes, subject), |statements, (lanes, subject), connection| {
            Box::pin(async move {
                let query = statements
                    .claim_subject()
                    .bind(&lanes.types)
                    .bind(&subject.subject)
                    .bind(i64::from(subject.limit))
                    .bind(&lanes.leases);
                query.fetch_all(connection).await?.iter().map(claimed).collect()
            })
        })
        .await
}

async fn claim_lanes(caller: &Caller, lanes: LaneArrays) -> Result<Vec<ClaimedEvent>, StoreError> {
    caller
        .call(lanes, |statements, lanes, connection| {
            Box::pin(async move {
                let query = statements
                    .claim()
                    .bind(&lanes.types)
                    .bind(&lanes.limits)
                    .bind(&lanes.from_at)
                    .bind(&lanes.from_id)
                    .bind(&lanes.leases);
                query.fetch_all(connection).await?.iter().map(claimed).collect()
            })
        })
        .await
}

pub(super) async fn claim_by_id(
    caller: &Caller,
    id: Uuid,
    lease: Duration,
) -> Result<Option<ClaimedEvent>, StoreError> {
    caller
        .call((id, micros(lease)), |statements, (id, lease), connection| {
            Box::pin(async move {
                let query = statements.claim_by_id().bind(id).bind(lease);
                query.fetch_optional(connection).await?.as_ref().map(claimed).transpose()
            })
        })
        .await
}

pub(super) async fn is_due(caller: &Caller, id: Uuid) -> Result<bool, StoreError> {
    caller
        .read(id, |statements, id, connection| {
            Box::pin(async move { statements.is_due().bind(id).fetch_one(connection).await?.try_get(0) })
        })
        .await
}

pub(super) async fn peek(caller: &Caller, claim: &Claim) -> Result<Peek, StoreError> {
    let subject = claim.subject.as_ref().map(|subject| subject.subject.clone());
    caller
        .read((LaneArrays::new(&claim.lanes), subject), |statements, (lanes, subject), connection| {
            Box::pin(async move {
                let query = match subject {
                    None => statements.peek().bind(&lanes.types).bind(&lanes.from_at).bind(&lanes.from_id),
                    Some(subject) => statements.peek_subject().bind(&lanes.types).bind(subject),
                };
                let row = query.fetch_one(connection).await?;
                Ok(Peek { claimable: row.try_get("claimable")?, next_due_at: optional_instant(&row, "next_due_at")? })
            })
        })
        .await
}
