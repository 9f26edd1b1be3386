//! A claim that its receiver has accepted, settled or extended later by the receiver itself.
//!
//! The token proves the lease and nothing else: what is written is decided by the same rules and under the same guard as
//! for an attempt of our own, so a token that has outlived its lease changes nothing.

use std::time::Duration;

use super::spans::SettleSpan;
use super::{Shared, TokenError};
use crate::event::{Event, EventId, Status};
use crate::lease::{ClaimedEvent, Lease};
use crate::outcome::{AttemptLine, Decision, MAX_ERROR_CHARS, Outcome, Policy, Settlement, decide, stored_text};

/// Settles the claim.
pub(super) async fn settle(shared: &Shared, id: &EventId, token: &str, outcome: Outcome) -> Result<(), TokenError> {
    let lease = lease(shared, id, token).await?;
    let event = shared.store.event(id, false).await?.ok_or(TokenError::LeaseLost)?;
    let claimed = claimed(event, &lease).ok_or(TokenError::LeaseLost)?;
    let policy =
        shared.registry.route_for(&claimed.event_type).map_or_else(Policy::default, |route| route.policy.clone());
    let Decision::Settle(change) = decide(&outcome, &claimed, &policy, fastrand::f64()) else {
        return Ok(());
    };
    let attempt = (shared.settings.log_all_attempts || outcome != Outcome::Complete).then(|| line(&claimed, &outcome));
    shared.tally.note_intent(&claimed, &outcome, &change);
    let settlement = Settlement { lease: claimed.lease, change, attempt };
    let span = SettleSpan::begin(shared, None);
    let applied = shared.store.settle(std::slice::from_ref(&settlement)).await;
    if let Some(span) = span {
        span.ended(1, Some(&applied));
    }
    match &applied {
        Ok(applied) if applied.is_empty() => shared.tally.note_lost(&settlement),
        Ok(_) => shared.tally.note_applied(&settlement),
        Err(_) => shared.tally.forget(&settlement),
    }
    if applied?.is_empty() { Err(TokenError::LeaseLost) } else { Ok(()) }
}

/// Extends the claim and returns the token by which it is known from then on.
pub(super) async fn extend(
    shared: &Shared,
    id: &EventId,
    token: &str,
    duration: Duration,
) -> Result<String, TokenError> {
    let lease = lease(shared, id, token).await?;
    let extended = shared.store.extend(&lease, duration).await?.ok_or(TokenError::LeaseLost)?;
    Ok(shared.claim_key().await?.token(&extended))
}

async fn lease(shared: &Shared, id: &EventId, token: &str) -> Result<Lease, TokenError> {
    let lease = shared.claim_key().await?.lease(token);
    lease.filter(|lease| lease.event_id == *id).ok_or(TokenError::Invalid)
}

/// The event as its claim saw it, while that claim is the present one. Both ends of the deferral's age are the
/// database's: the chain began at one instant and this claim was made at another.
fn claimed(event: Event, lease: &Lease) -> Option<ClaimedEvent> {
    if event.status != Status::Processing || event.claim_no != lease.claim_no {
        return None;
    }
    let deferred_for = event.deferred_since.zip(event.locked_at).map(|(since, locked)| {
        Duration::from_micros(u64::try_from(locked.as_micros().saturating_sub(since.as_micros())).unwrap_or(0))
    });
    Some(ClaimedEvent {
        lease: lease.clone(),
        event_type: event.event_type,
        subject: event.subject,
        payload: None,
        payload_bytes: 0,
        headers: event.headers,
        attempts: event.attempts,
        max_attempts: event.max_attempts,
        created_at: event.created_at,
        available_at: event.available_at,
        waited: Duration::ZERO,
        deferred_for,
    })
}

fn line(event: &ClaimedEvent, outcome: &Outcome) -> AttemptLine {
    AttemptLine {
        number: event.attempt_number(),
        duration: Duration::ZERO,
        outcome: outcome.as_str(),
        status_code: None,
        error: outcome.error().map(|error| stored_text(error, MAX_ERROR_CHARS)),
        response: None,
    }
}
