//! What a receiver that has accepted an event does with its claim later: settle it, or ask for more time.
//!
//! Neither needs a token of this service: the claim token that came with the delivery is the proof. It stands in the body,
//! which is read before anybody has been judged and so must be small.

use std::time::Duration;

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::StrangersJson;
use super::event_view::EventView;
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::path::PathId;
use super::problem::{Answer, Problem};
use super::query::{NoParameters, Query, check_text};
use super::whole;
use crate::outcome::{MAX_ERROR_CHARS, Outcome};
use crate::timestamp::Timestamp;

problem_set!(TokenProblems: WithBody, EventNotFound, LeaseLost);

/// The longest delay or extension: a day.
const MAX_MS: u64 = 86_400_000;
/// The shortest extension.
const MIN_LEASE_MS: u64 = 1_000;

/// What came of an accepted event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Settle)]
pub(super) struct SettleBody {
    /// The header `outbox-claim-token` of the delivery.
    #[schema(max_length = 1500)]
    token: String,
    /// What came of it.
    outcome: SettleOutcome,
    /// With `retry` and `defer`: not before so many milliseconds from now.
    #[schema(minimum = 0, maximum = 86_400_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    delay_ms: Option<u64>,
    /// Why; becomes the event's `last_error`.
    #[schema(max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    reason: Option<String>,
}

/// The words of a settlement.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
enum SettleOutcome {
    /// Delivered.
    Complete,
    /// Failed for now.
    Retry,
    /// Not now.
    Defer,
    /// Not at all.
    Skip,
    /// Given up.
    DeadLetter,
}

impl TryFrom<String> for SettleOutcome {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "complete" => Ok(Self::Complete),
            "retry" => Ok(Self::Retry),
            "defer" => Ok(Self::Defer),
            "skip" => Ok(Self::Skip),
            "dead_letter" => Ok(Self::DeadLetter),
            _ => Err("must be `complete`, `retry`, `defer`, `skip` or `dead_letter`"),
        }
    }
}

/// More time for an accepted event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Extend)]
pub(super) struct ExtendBody {
    /// The header `outbox-claim-token` of the delivery.
    #[schema(max_length = 1500)]
    token: String,
    /// How long the lease lasts from now on, in milliseconds.
    #[schema(minimum = 1000, maximum = 86_400_000)]
    #[serde(deserialize_with = "whole::required")]
    lease_ms: u64,
}

/// The lease as it is now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Extended {
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    lease_until: Timestamp,
    /// What settles or extends the claim from now on; in most outboxes the same token as before.
    token: String,
}

/// Settle a claim that its receiver has accepted.
#[utoipa::path(
    post, path = "/v1/events/{id}/settle", tag = "events", operation_id = "settleEvent",
    params(
        ("id" = String, Path, description = "The event's id."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    security(()),
    request_body(content = SettleBody),
    responses((status = 200, description = "The event as it is now, without its payload.", body = EventView), TokenProblems)
)]
pub(super) async fn settle(
    PathId(id): PathId,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    StrangersJson(body): StrangersJson<SettleBody>,
) -> Answer<Json<EventView>> {
    check_text(body.reason.as_deref(), "/reason", MAX_ERROR_CHARS)?;
    if body.delay_ms.is_some_and(|ms| ms > MAX_MS) {
        return Err(Problem::field("/delay_ms", "must be at most 86400000"));
    }
    let outcome = outcome(&body);
    outbox.settle_by_token(&id, &body.token, outcome).await?;
    let event = outbox.store().event(&id, false).await?.ok_or_else(Problem::event_not_found)?;
    Ok(Json(EventView::of_outbox(event, outbox.outbox())))
}

/// Extend the lease of a claim that its receiver has accepted.
#[utoipa::path(
    post, path = "/v1/events/{id}/extend", tag = "events", operation_id = "extendEvent",
    params(
        ("id" = String, Path, description = "The event's id."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    security(()),
    request_body(content = ExtendBody),
    responses((status = 200, description = "The new end of the lease, and its token.", body = Extended), TokenProblems)
)]
pub(super) async fn extend(
    PathId(id): PathId,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    StrangersJson(body): StrangersJson<ExtendBody>,
) -> Answer<Json<Extended>> {
    if !(MIN_LEASE_MS..=MAX_MS).contains(&body.lease_ms) {
        return Err(Problem::field("/lease_ms", "must be 1000 to 86400000"));
    }
    let token = outbox.extend_by_token(&id, &body.token, Duration::from_millis(body.lease_ms)).await?;
    let event = outbox.store().event(&id, false).await?.ok_or_else(Problem::event_not_found)?;
    let lease_until = event.lease_until.ok_or_else(Problem::lease_lost)?;
    Ok(Json(Extended { lease_until, token }))
}

fn outcome(body: &SettleBody) -> Outcome {
    let delay = body.delay_ms.map(Duration::from_millis);
    let reason = |or: &str| body.reason.clone().unwrap_or_else(|| or.to_owned());
    match body.outcome {
        SettleOutcome::Complete => Outcome::Complete,
        SettleOutcome::Retry => Outcome::Retry { error: reason("the receiver asked for a retry"), retry_after: delay },
        SettleOutcome::Defer => Outcome::Defer { delay, reason: reason("the receiver deferred it") },
        SettleOutcome::Skip => Outcome::Skip { reason: reason("the receiver skipped it") },
        SettleOutcome::DeadLetter => Outcome::DeadLetter { error: reason("the receiver gave it up") },
    }
}
