//! One event by its id: the way of the normal case, right after the application's commit.
//!
//! From the claim on everything happens on a task of its own. A caller that goes away, or whose wait runs out, leaves a
//! delivery that goes on and is settled.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::attempt::attempt;
use super::settler::{Fate, settle};
use super::spans;
use super::{ProcessEventError, Processed, ProcessedOutcome, Shared};
use crate::event::{Event, EventId, Status};
use crate::handler::{Delivery, Route};
use crate::outcome::{Change, Outcome};
use crate::store::StoreError;

/// How long a settlement is tried while the database is away.
const PATIENCE: Duration = Duration::from_secs(20);

/// As long as a caller may wait at most: instants of further away cannot be reckoned with.
const LONGEST_WAIT: Duration = Duration::from_hours(366 * 24);

/// Processes one event and waits at most `wait`.
pub(super) async fn process(
    shared: &Arc<Shared>,
    id: &EventId,
    wait: Duration,
) -> Result<Processed, ProcessEventError> {
    let until = Instant::now() + wait.min(LONGEST_WAIT);
    let event = shared.store.event(id, false).await?.ok_or(ProcessEventError::NotFound)?;
    if let Some(answer) = left_alone(shared, &event).await? {
        return Ok(answer);
    }
    let Some(route) = shared.registry.route_for(&event.event_type).cloned() else {
        return Ok(pending(format!("no route takes events of type {}", event.event_type)));
    };
    let slot = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return Err(ProcessEventError::ShuttingDown),
        slot = timeout_at(until, Arc::clone(shared.slots.permits()).acquire_owned()) => slot,
    };
    let slot = match slot {
        Ok(Ok(slot)) => slot,
        Ok(Err(_)) => return Err(ProcessEventError::ShuttingDown),
        Err(_) => return Ok(pending("limited: all of this instance's slots are taken".to_owned())),
    };
    let work = claim_and_deliver(Arc::clone(shared), id.clone(), route, slot);
    let mut task = shared.tasks.spawn(work);
    match timeout_at(until, &mut task).await {
        Err(_) => Ok(Processed { outcome: ProcessedOutcome::Processing, reason: None, still_running: true }),
        Ok(Ok(result)) => Ok(result?),
        Ok(Err(error)) => Err(ProcessEventError::Panicked { reason: error.to_string() }),
    }
}

/// What to answer when the event is not to be processed now; an expired lease is taken back first.
async fn left_alone(shared: &Shared, event: &Event) -> Result<Option<Processed>, StoreError> {
    match event.status {
        Status::Pending => Ok(None),
        Status::Completed => Ok(Some(as_it_is(ProcessedOutcome::Completed))),
        Status::Skipped => Ok(Some(as_it_is(ProcessedOutcome::Skipped))),
        Status::DeadLetter => Ok(Some(as_it_is(ProcessedOutcome::DeadLetter))),
        Status::Unknown => Ok(Some(unknown())),
        Status::Processing => match shared.store.reap_by_id(&event.id).await? {
            None => Ok(Some(as_it_is(ProcessedOutcome::Processing))),
            Some(reaped) => {
                shared.tally.note_reaped(&reaped);
                let is_dead = reaped.status == Status::DeadLetter;
                Ok(is_dead.then(|| as_it_is(ProcessedOutcome::DeadLetter)))
            }
        },
    }
}

async fn claim_and_deliver(
    shared: Arc<Shared>,
    id: EventId,
    route: Arc<Route>,
    slot: OwnedSemaphorePermit,
) -> Result<Processed, StoreError> {
    let lease = shared.settings.lease_for(route.timeout);
    let claim_key = shared.claim_key().await?.clone();
    let Some(event) = shared.store.claim_by_id(&id, lease).await? else {
        return why_not_claimed(&shared, &id).await;
    };
    // Runs count it too when they leave room for other types.
    let hold = shared.in_flight.hold(&event.event_type);
    let span = spans::of_attempt(&shared, &event);
    let delivery = Arc::new(Delivery::start(event, route.timeout).with_claim_key(claim_key).with_span(span));
    let cut_off = shared.cut_off.clone();
    let finished = attempt(delivery, route, shared.store.max_payload_bytes(), slot, cut_off).await;
    drop(hold);
    finished.log(&shared.outbox);
    spans::attempt_ended(&shared, &finished);
    let settlement = finished.settlement(shared.settings.log_all_attempts);
    finished.count(&shared.tally, settlement.as_ref());
    let Some(settlement) = settlement else {
        let accepted = finished.outcome == Outcome::Accepted;
        return Ok(as_it_is(if accepted { ProcessedOutcome::Processing } else { ProcessedOutcome::Completed }));
    };
    let outcome = match settlement.change {
        Change::Complete => ProcessedOutcome::Completed,
        Change::Retry { .. } | Change::Defer { .. } | Change::Release => ProcessedOutcome::Pending,
        Change::Skip { .. } => ProcessedOutcome::Skipped,
        Change::DeadLetter { .. } => ProcessedOutcome::DeadLetter,
    };
    let settled = settle(&shared, vec![settlement], PATIENCE, span).await;
    match settled.failure {
        Some(error) => Err(error),
        None if settled.count(Fate::Later) > 0 => {
            let reason =
                Some("its row is locked by somebody else; the outcome is written as soon as it can be".to_owned());
            Ok(Processed { outcome: ProcessedOutcome::Processing, reason, still_running: false })
        }
        None if settled.count(Fate::Applied) == 0 => Ok(as_it_is(ProcessedOutcome::LeaseLost)),
        None => Ok(as_it_is(outcome)),
    }
}

/// The event was pending a moment ago and could not be claimed: not due yet, or in other hands. Whether it is due is
/// asked first: asked after its status, a claim in between would make it look as if it were not due.
async fn why_not_claimed(shared: &Shared, id: &EventId) -> Result<Processed, StoreError> {
    let is_due = shared.store.is_due(id).await?;
    let Some(event) = shared.store.event(id, false).await? else {
        return Ok(as_it_is(ProcessedOutcome::Completed));
    };
    match event.status {
        Status::Pending if is_due => Ok(as_it_is(ProcessedOutcome::Processing)),
        Status::Pending => Ok(pending(format!("not due before {}", event.available_at))),
        Status::Processing => Ok(as_it_is(ProcessedOutcome::Processing)),
        Status::Completed => Ok(as_it_is(ProcessedOutcome::Completed)),
        Status::Skipped => Ok(as_it_is(ProcessedOutcome::Skipped)),
        Status::DeadLetter => Ok(as_it_is(ProcessedOutcome::DeadLetter)),
        Status::Unknown => Ok(unknown()),
    }
}

/// Somebody else's label: it is left to them.
fn unknown() -> Processed {
    pending("its status is one that the outbox's description does not name".to_owned())
}

fn as_it_is(outcome: ProcessedOutcome) -> Processed {
    Processed { outcome, reason: None, still_running: false }
}

fn pending(reason: String) -> Processed {
    Processed { outcome: ProcessedOutcome::Pending, reason: Some(reason), still_running: false }
}
