//! What a run begins as soon as it can: a claim for the free slots, a settlement of what has ended, a sweep.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::{Claimed, Run};
use crate::processor::batch::Grant;
use crate::processor::in_flight::Hold;
use crate::processor::plan::{Eligibility, Room, eligibility, share};
use crate::processor::settler::{MAX_BATCH, settle};
use crate::processor::spans::RunSpan;
use crate::processor::sweep::{REAP_EVERY, sweep};
use crate::store::{Claim, LaneClaim, SubjectClaim};

/// How long a settlement is tried while the database is away, if the budget leaves so much.
const LONGEST_PATIENCE: Duration = Duration::from_secs(10);
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// With fewer slots than these a claim may take all of them.
const FEW_SLOTS: usize = 32;

/// Slots that one claim may fill: half of them, so that the database works on the next claim while the events of the last
/// one are in their handlers' hands.
fn most_at_once(concurrency: usize) -> usize {
    if concurrency < FEW_SLOTS { concurrency } else { concurrency.div_ceil(2) }
}

impl Run {
    /// Claims for the slots that are free, from the lanes that are eligible now.
    pub(super) fn begin_claim(&mut self) {
        (self.wants_room, self.wants_batch) = (false, false);
        let much = most_at_once(self.shared.settings.concurrency);
        let free = self.shared.slots.free();
        if self.claiming.is_some() || !self.may_claim() {
            (self.slot, self.queuing) = (None, None);
            if !self.may_begin() || self.subject_drained {
                self.stand_back();
            }
            return;
        }
        if self.shall_linger(self.claim_from, free, much) {
            return;
        }
        let eligible = self.eligibility().eligible;
        if eligible.is_empty() {
            (self.slot, self.queuing) = (None, None);
            if self.has_swept {
                self.stand_back();
            }
            return;
        }
        let Some(mut grant) = self.grant(much) else {
            (self.slot, self.queuing) = (None, None);
            return;
        };
        let Some(slots) = self.free_slots(grant.count()) else {
            self.share.settle(grant, 0);
            self.queue_for_a_slot();
            return;
        };
        self.queuing = None;
        let others = self.shared.slots.free();
        let room = Room::new(slots.num_permits(), others, self.shared.settings.concurrency);
        let turn = self.turn;
        let (lanes, holds) =
            self.shared.in_flight.plan(|counts| share(eligible, room, turn, |event_type| counts.of(event_type)));
        self.turn = self.turn.wrapping_add(1);
        if lanes.is_empty() {
            self.share.settle(grant, 0);
            self.wants_room = true;
        } else {
            let total = lanes.iter().map(|lane| u64::from(lane.limit)).sum();
            self.share.trim(&mut grant, total);
            self.claim(lanes, holds, slots, grant);
        }
    }

    /// Nothing is there to be claimed: others may have its part of the batch and of the slots.
    fn stand_back(&mut self) {
        self.hungry = None;
        self.share.donate();
    }

    /// What a claim may bring, by the batch and by the outbox's part of the slots; `None` when that is nothing now.
    fn grant(&mut self, much: usize) -> Option<Grant> {
        let shared = &self.shared;
        self.hungry.get_or_insert_with(|| shared.slots.hungry());
        let part = match shared.slots.fair_part(shared.settings.concurrency) {
            usize::MAX => usize::MAX,
            part => part.saturating_sub(shared.in_flight.total()),
        };
        self.wants_room = part == 0;
        if self.wants_room {
            return None;
        }
        let grant = self.share.take(u64::try_from(much.min(part)).unwrap_or(u64::MAX));
        self.wants_batch = grant.is_none();
        grant
    }

    fn queue_for_a_slot(&mut self) {
        if self.queuing.is_none() {
            let slots = Arc::clone(self.shared.slots.permits());
            self.queuing = Some(Box::pin(async move { slots.acquire_owned().await.ok() }));
        }
    }

    pub(super) fn may_claim(&self) -> bool {
        self.may_begin()
            && !self.subject_drained
            // What has ended is settled before more is begun: memory stays bounded.
            && self.finished.len() < self.shared.settings.concurrency.max(MAX_BATCH)
    }

    /// Whether so few are better left to wait for more; never when no handler is running that could bring more.
    fn shall_linger(&self, until: Instant, count: usize, much: usize) -> bool {
        !self.started.is_empty() && count < much - much / 8 && Instant::now() < until
    }

    /// Nothing has ended the run yet.
    pub(super) fn may_begin(&self) -> bool {
        !self.stopping && self.failure.is_none() && !self.share.is_full()
    }

    /// How the lanes stand to this run now.
    pub(super) fn eligibility(&self) -> Eligibility {
        let shared = &self.shared;
        eligibility(&shared.lanes(), &self.request, &self.countdown, &shared.settings)
    }

    /// As many free slots as are wanted, if there are so many; `None` when there is none.
    fn free_slots(&mut self, wanted: u64) -> Option<OwnedSemaphorePermit> {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let mut held = self.slot.take();
        let more = wanted.saturating_sub(held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        let more = more.min(self.shared.slots.free());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        if let Ok(permits) = Arc::clone(self.shared.slots.permits()).try_acquire_many_owned(more) {
            match &mut held {
                Some(held) => held.merge(permits),
                None => held = Some(permits),
            }
        }
        held.filter(|permits| permits.num_permits() > 0)
    }

    fn claim(&mut self, lanes: Vec<LaneClaim>, holds: Vec<Hold>, mut slots: OwnedSemaphorePermit, grant: Grant) {
        let total = lanes.iter().map(|lane| lane.limit as usize).sum();
        if slots.num_permits() > total {
            drop(slots.split(slots.num_permits() - total));
        }
        let limit = u32::try_from(total).unwrap_or(u32::MAX);
        let subject = self.request.subject.clone().map(|subject| SubjectClaim { subject, limit });
        let claim = Claim { lanes, subject };
        let store = Arc::clone(&self.shared.store);
        let begun = Instant::now();
        self.claiming = Some(Box::pin(async move {
            let result = store.claim(&claim).await;
            Claimed { begun, lanes: claim.lanes, holds, slots, grant, result }
        }));
    }

    /// Settles everything that has ended while the last settlement was under way, or beside it, when that is much.
    pub(super) fn begin_settle(&mut self) {
        let much = most_at_once(self.shared.settings.concurrency).min(MAX_BATCH);
        let may_begin = match self.settling.len() {
            0 => !self.finished.is_empty() && !self.shall_linger(self.settle_from, self.finished.len(), much),
            1 => self.finished.len() >= much || self.is_nearly_done(),
            _ => false,
        };
        if !may_begin {
            return;
        }
        let count = self.finished.len().min(MAX_BATCH);
        let batch: Vec<_> = self.finished.drain(..count).collect();
        // A database that has failed already is not waited for beyond the budget.
        let least = if self.failure.is_some() { Duration::ZERO } else { LEAST_PATIENCE };
        let patience = self.countdown.remaining().clamp(least, LONGEST_PATIENCE);
        let shared = Arc::clone(&self.shared);
        let span = self.span.as_ref().map(RunSpan::context);
        self.settling.push(Box::pin(async move { settle(&shared, batch, patience, span).await }));
    }

    /// Nothing is left to be done but to settle.
    fn is_nearly_done(&self) -> bool {
        !self.finished.is_empty() && self.started.is_empty() && self.claiming.is_none()
    }

    /// Sweeps when a claim found the end of a lane, and about every second.
    pub(super) fn begin_sweep(&mut self) {
        if self.sweeping.is_some() || !self.may_claim() {
            return;
        }
        let is_due = self.wants_sweep || Instant::now() >= self.shared.lanes().next_sweep();
        if is_due && self.shared.may_sweep() {
            self.wants_sweep = false;
            self.sweeping = Some(Box::pin(sweep(Arc::clone(&self.shared), REAP_EVERY)));
        }
    }

    /// A sweep that nobody can use any more is not waited for: a database that hangs must not hold the run past its budget.
    pub(super) fn drop_useless_sweep(&mut self) {
        if self.failure.is_some() || self.countdown.remaining().is_zero() {
            self.sweeping = None;
        }
    }

    /// Before a run ends for want of work it must have looked for itself, however slow sweeps are: a new type, or an
    /// event that is due again, may have come since somebody else looked. Returns whether there is something to wait for.
    pub(super) fn begin_missing_sweep(&mut self) -> bool {
        let is_missing = !self.has_swept
            && self.may_begin()
            && !self.countdown.remaining().is_zero()
            // Out of time, it does not say that nothing is left.
            && self.eligibility().too_late.is_empty();
        if is_missing {
            self.sweeping = Some(Box::pin(sweep(Arc::clone(&self.shared), Duration::ZERO)));
        }
        is_missing
    }
}
