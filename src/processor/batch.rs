//! The batch of a run: how many events it may still claim, shared by the outboxes that it serves.
//!
//! Each outbox begins with an equal share, so that none can use up the batch before another has looked at its table. One
//! that has nothing to claim leaves its share to all. A claim takes what it asks for beforehand and gives back what it
//! did not get, so that all of them together never claim more than the batch. The run is over when all have come to rest:
//! until then each goes on looking for what is new.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Batch {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// For whoever takes it first.
    common: u64,
    /// The shares, added up.
    in_shares: u64,
    /// Taken by claims that are under way.
    claiming: u64,
    /// Outboxes whose part of the run goes on, and those of them that have nothing to do.
    parts: usize,
    resting: usize,
    /// Grows with every change that somebody may wait for.
    version: u64,
}

impl State {
    fn is_full(&self) -> bool {
        self.common == 0 && self.in_shares == 0 && self.claiming == 0
    }
}

impl Batch {
    fn of(size: u32, parts: usize) -> Arc<Self> {
        let state = State { in_shares: u64::from(size), parts, ..State::default() };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives so much to all.
    fn give(&self, mut state: MutexGuard<'_, State>, count: u64) {
        state.common += count;
        self.tell(state);
    }

    fn tell(&self, mut state: MutexGuard<'_, State>) {
        state.version += 1;
        drop(state);
        self.changed.notify_waiters();
    }
}

/// One outbox's part in a batch. What is left of it when it is dropped goes to the others.
#[derive(Debug)]
pub(super) struct Share {
    batch: Arc<Batch>,
    own: u64,
    is_resting: bool,
    /// The version when it last got nothing, or came to rest.
    seen: u64,
}

/// What a claim may bring. Dropped without [`Share::settle`], all of it goes back.
#[derive(Debug)]
pub(super) struct Grant {
    batch: Arc<Batch>,
    count: u64,
}

impl Share {
    /// The whole batch.
    pub(super) fn whole(size: u32) -> Self {
        Self::new(&Batch::of(size, 1), u64::from(size))
    }

    /// Equal parts of a batch; what cannot be divided goes to those that come first, beginning with the one at `first`.
    pub(super) fn divide(size: u32, parts: usize, first: usize) -> Vec<Self> {
        let count = parts.max(1);
        let batch = Batch::of(size, count);
        let (size, parts) = (u64::from(size), count as u64);
        let own = |place: usize| {
            let turn = (place + count - first % count) % count;
            size / parts + u64::from((turn as u64) < size % parts)
        };
        (0..count).map(|place| Self::new(&batch, own(place))).collect()
    }

    fn new(batch: &Arc<Batch>, own: u64) -> Self {
        Self { batch: Arc::clone(batch), own, is_resting: false, seen: 0 }
    }

    /// Takes up to `wanted`. `None` when there is nothing now; [`Share::changed`] then waits until there may be.
    pub(super) fn take(&mut self, wanted: u64) -> Option<Grant> {
        let mut state = self.batch.state();
        let own = wanted.min(self.own);
        let common = (wanted - own).min(state.common);
        if own + common == 0 {
            self.seen = state.version;
            return None;
        }
        self.own -= own;
        state.in_shares -= own;
        state.common -= common;
        state.claiming += own + common;
        drop(state);
        Some(Grant { batch: Arc::clone(&self.batch), count: own + common })
    }

    /// Takes back what a claim will not need, so that it may bring `count`.
    pub(super) fn trim(&mut self, grant: &mut Grant, count: u64) {
        let surplus = grant.count.saturating_sub(count);
        let mut state = self.batch.state();
        state.claiming -= surplus;
        state.in_shares += surplus;
        grant.count -= surplus;
        self.own += surplus;
    }

    /// A claim has brought so many, or was not made.
    pub(super) fn settle(&mut self, mut grant: Grant, brought: u64) {
        self.trim(&mut grant, brought);
        let mut state = self.batch.state();
        state.claiming -= grant.count;
        grant.count = 0;
        if state.is_full() {
            self.batch.tell(state);
        }
    }

    /// Leaves what it has to the others, and to itself.
    pub(super) fn donate(&mut self) {
        if self.own == 0 {
            return;
        }
        let mut state = self.batch.state();
        state.in_shares -= self.own;
        self.batch.give(state, self.own);
        self.own = 0;
    }

    /// Nothing is left to do here. Says whether that is so everywhere; [`Share::changed`] waits until it may be.
    pub(super) fn rest(&mut self) -> bool {
        let mut state = self.batch.state();
        if !self.is_resting {
            self.is_resting = true;
            state.resting += 1;
        }
        let is_over = state.resting == state.parts;
        if is_over {
            self.batch.tell(state);
        } else {
            self.seen = state.version;
        }
        is_over
    }

    /// There is something to do again.
    pub(super) fn wake(&mut self) {
        if self.is_resting {
            self.is_resting = false;
            self.batch.state().resting -= 1;
        }
    }

    /// Whether it waits for the others to come to rest.
    pub(super) fn is_resting(&self) -> bool {
        self.is_resting
    }

    /// Whether the batch has been claimed to its last event.
    pub(super) fn is_full(&self) -> bool {
        self.batch.state().is_full()
    }

    /// Waits until something has changed since [`Share::take`] found nothing or [`Share::rest`] was not the last.
    pub(super) async fn changed(&self) {
        loop {
            let changed = self.batch.changed.notified();
            if self.batch.state().version != self.seen {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.wake();
        let mut state = self.batch.state();
        state.in_shares -= self.own;
        state.parts -= 1;
        self.batch.give(state, self.own);
    }
}

impl Grant {
    /// How many events the claim may bring.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.count > 0 {
            let mut state = self.batch.state();
            state.claiming -= self.count;
            self.batch.give(state, self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn shares_are_equal_and_the_rest_goes_round() {
        let own = |size, first| -> Vec<u64> { Share::divide(size, 3, first).iter().map(|share| share.own).collect() };
        assert_eq!(own(9, 0), [3, 3, 3]);
        assert_eq!(own(10, 1), [3, 4, 3]);
        assert_eq!(own(2, 2), [1, 0, 1]);
        assert_eq!(own(1, 5), [0, 0, 1]);
    }

    #[test]
    fn a_share_is_anothers_only_when_it_was_left_to_it() {
        let mut shares = Share::divide(10, 2, 0);
        let (mut second, mut first) = (shares.pop().unwrap(), shares.pop().unwrap());
        let grant = first.take(100).unwrap();
        assert_eq!(grant.count(), 5);
        first.settle(grant, 5);
        assert!(first.take(1).is_none() && first.changed().now_or_never().is_none());
        second.donate();
        assert!(first.changed().now_or_never().is_some());
        let grant = first.take(100).unwrap();
        assert!(!first.is_full());
        first.settle(grant, 5);
        assert!(second.is_full());
    }

    #[test]
    fn what_a_claim_did_not_bring_stays_with_its_share_and_what_was_lost_goes_to_all() {
        let mut shares = Share::divide(4, 2, 0);
        let (mut second, mut first) = (shares.pop().unwrap(), shares.pop().unwrap());
        let grant = first.take(2).unwrap();
        first.settle(grant, 1);
        assert_eq!((first.own, second.take(9).map(|grant| grant.count())), (1, Some(2)));
        drop(first);
        assert_eq!(second.take(9).map(|grant| grant.count()), Some(3));
    }

    #[test]
    fn a_run_is_over_when_all_its_parts_have_come_to_rest_or_ended() {
        let mut shares = Share::divide(9, 3, 0);
        let (mut third, mut second, mut first) = (shares.pop().unwrap(), shares.pop().unwrap(), shares.pop().unwrap());
        assert!(!first.rest() && !second.rest());
        first.wake();
        assert!(!third.rest() && third.changed().now_or_never().is_none());
        drop(first);
        assert!(third.changed().now_or_never().is_some());
        assert!(third.rest() && second.rest());
        assert!(Share::whole(1).rest());
    }

    #[test]
    fn whoever_waits_learns_that_the_batch_is_full() {
        let mut shares = Share::divide(1, 2, 0);
        let (mut second, mut first) = (shares.pop().unwrap(), shares.pop().unwrap());
        let grant = first.take(1).unwrap();
        assert!(second.take(1).is_none() && second.changed().now_or_never().is_none());
        first.settle(grant, 1);
        assert!(second.changed().now_or_never().is_some() && second.is_full());
    }
}
