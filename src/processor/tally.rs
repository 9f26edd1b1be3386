//! What has ended in one outbox since it was last written down, for the chart of the last hour; and the metrics of what was
//! settled. Nobody waits for the writing: what could not be written is kept for the next time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Shared;
use crate::event::Status;
use crate::lease::{ClaimedEvent, Lease};
use crate::metrics::{self, GivenUp};
use crate::outcome::{Change, Outcome, Settlement};
use crate::store::{MinuteCounts, Reaped};

/// Counts since the last writing.
#[derive(Default)]
pub(super) struct Tally {
    completed: AtomicU64,
    retried: AtomicU64,
    deferred: AtomicU64,
    skipped: AtomicU64,
    dead_lettered: AtomicU64,
    is_writing: AtomicBool,
    /// Why events are being given up, until it is known whether their settlements were applied.
    giving_up: Mutex<HashMap<Lease, (String, GivenUp)>>,
}

impl Tally {
    /// An event is going to be given up, if its settlement does so.
    pub(super) fn note_intent(&self, event: &ClaimedEvent, outcome: &Outcome, change: &Change) {
        let Change::DeadLetter { spends_attempt, .. } = change else { return };
        let reason = match (outcome, spends_attempt) {
            (Outcome::DeadLetter { .. }, _) => GivenUp::Permanent,
            (_, true) => GivenUp::AttemptsExhausted,
            (_, false) => GivenUp::DeferredTooLong,
        };
        self.giving_up().insert(event.lease.clone(), (event.event_type.clone(), reason));
    }

    /// A settlement was applied.
    pub(super) fn note_applied(&self, settlement: &Settlement) {
        match &settlement.change {
            Change::Complete => self.note_completed(),
            Change::Retry { .. } => add(&self.retried),
            Change::Defer { .. } => add(&self.deferred),
            Change::Skip { .. } => add(&self.skipped),
            Change::DeadLetter { .. } => {
                add(&self.dead_lettered);
                if let Some((event_type, reason)) = self.giving_up().remove(&settlement.lease) {
                    metrics::dead_letter(&event_type, reason);
                }
            }
            Change::Release => {}
        }
    }

    /// A settlement came too late.
    pub(super) fn note_lost(&self, settlement: &Settlement) {
        metrics::lease_lost();
        self.forget(settlement);
    }

    /// What becomes of a settlement nobody here will know.
    pub(super) fn forget(&self, settlement: &Settlement) {
        if let Change::DeadLetter { .. } = settlement.change {
            self.giving_up().remove(&settlement.lease);
        }
    }

    /// An event was delivered, and its handler or a settlement has said so.
    pub(super) fn note_completed(&self) {
        add(&self.completed);
    }

    /// An expired lease was taken back.
    pub(super) fn note_reaped(&self, reaped: &Reaped) {
        metrics::lease_reaped();
        if reaped.status == Status::DeadLetter {
            add(&self.dead_lettered);
            metrics::dead_letter(&reaped.event_type, GivenUp::ClaimExpired);
        } else {
            add(&self.retried);
        }
    }

    fn take(&self) -> MinuteCounts {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        MinuteCounts {
            completed: take(&self.completed),
            retried: take(&self.retried),
            deferred: take(&self.deferred),
            skipped: take(&self.skipped),
            dead_lettered: take(&self.dead_lettered),
        }
    }

    fn give_back(&self, counts: MinuteCounts) {
        let give = |count: &AtomicU64, number: u64| count.fetch_add(number, Ordering::Relaxed);
        give(&self.completed, counts.completed);
        give(&self.retried, counts.retried);
        give(&self.deferred, counts.deferred);
        give(&self.skipped, counts.skipped);
        give(&self.dead_lettered, counts.dead_lettered);
    }

    fn giving_up(&self) -> std::sync::MutexGuard<'_, HashMap<Lease, (String, GivenUp)>> {
        self.giving_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Begins to write down what has ended, if anything has and nobody is writing. A shutdown waits for it.
pub(super) fn write_down(shared: &Arc<Shared>) {
    if shared.tally.is_writing.swap(true, Ordering::AcqRel) {
        return;
    }
    let counts = shared.tally.take();
    if counts.is_zero() {
        shared.tally.is_writing.store(false, Ordering::Release);
        return;
    }
    let shared = Arc::clone(shared);
    shared.clone().tasks.spawn(async move {
        // An answer that was lost may count twice: it is a chart.
        if let Err(error) = shared.store.add_minute(&shared.outbox, counts).await {
            tracing::debug!(outbox = %shared.outbox, %error, "the minute's counts could not be written; they are kept");
            shared.tally.give_back(counts);
        }
        shared.tally.is_writing.store(false, Ordering::Release);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_is_there_the_next_time() {
        let tally = Tally::default();
        tally.note_completed();
        tally.note_completed();
        let counts = tally.take();
        assert_eq!((counts.completed, tally.take().is_zero()), (2, true));
        tally.note_completed();
        tally.give_back(counts);
        assert_eq!(tally.take().completed, 3);
    }

    #[test]
    fn why_an_event_was_given_up_is_kept_until_its_settlement_has_ended() {
        let tally = Tally::default();
        let event = ClaimedEvent::example();
        let change = Change::DeadLetter { spends_attempt: true, error: String::new() };
        let settlement = Settlement { lease: event.lease.clone(), change: change.clone(), attempt: None };
        let reason = |outcome: Outcome, spends_attempt| {
            let change = Change::DeadLetter { spends_attempt, error: String::new() };
            tally.note_intent(&event, &outcome, &change);
            tally.giving_up().get(&event.lease).map(|(_, reason)| *reason)
        };
        assert_eq!(reason(Outcome::retry("no"), true), Some(GivenUp::AttemptsExhausted));
        assert_eq!(reason(Outcome::DeadLetter { error: String::new() }, true), Some(GivenUp::Permanent));
        let defer = Outcome::Defer { delay: None, reason: String::new() };
        assert_eq!(reason(defer, false), Some(GivenUp::DeferredTooLong));
        tally.note_applied(&settlement);
        assert!(tally.giving_up().is_empty());
        assert_eq!(tally.take().dead_lettered, 1);
    }
}
