//! The slots of an instance, one for each handler that may run, shared by all its outboxes.
//!
//! While several outboxes have something to claim, each may hold its part of them and no more, whatever its backlog; an
//! outbox that is alone in that may hold all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore};

/// The slots, as one outbox sees them.
#[derive(Debug)]
pub(super) struct Slots {
    permits: Arc<Semaphore>,
    /// Runs of this outbox that have something to claim, or do not know it yet.
    own: Arc<AtomicUsize>,
    /// Outboxes with such runs.
    outboxes: Arc<AtomicUsize>,
    /// Told when one of them has what it wanted.
    freed: Arc<Notify>,
}

/// Says, while it lives, that a run of an outbox has something to claim.
#[derive(Debug)]
pub(super) struct Hungry {
    own: Arc<AtomicUsize>,
    outboxes: Arc<AtomicUsize>,
    freed: Arc<Notify>,
}

impl Slots {
    /// So many slots, of one outbox.
    pub(super) fn new(count: usize, freed: Arc<Notify>) -> Self {
        Self { permits: Arc::new(Semaphore::new(count)), own: Arc::default(), outboxes: Arc::default(), freed }
    }

    /// The same slots, of another outbox.
    pub(super) fn shared(&self) -> Self {
        Self {
            permits: Arc::clone(&self.permits),
            own: Arc::default(),
            outboxes: Arc::clone(&self.outboxes),
            freed: Arc::clone(&self.freed),
        }
    }

    /// One permit a slot.
    pub(super) fn permits(&self) -> &Arc<Semaphore> {
        &self.permits
    }

    /// How many are free.
    pub(super) fn free(&self) -> usize {
        self.permits.available_permits()
    }

    /// A run begins to claim.
    pub(super) fn hungry(&self) -> Hungry {
        if self.own.fetch_add(1, Ordering::AcqRel) == 0 {
            self.outboxes.fetch_add(1, Ordering::AcqRel);
        }
        Hungry { own: Arc::clone(&self.own), outboxes: Arc::clone(&self.outboxes), freed: Arc::clone(&self.freed) }
    }

    /// How many of `concurrency` slots one outbox may hold now.
    pub(super) fn fair_part(&self, concurrency: usize) -> usize {
        match self.outboxes.load(Ordering::Acquire) {
            0 | 1 => usize::MAX,
            several => (concurrency / several).max(1),
        }
    }
}

impl Drop for Hungry {
    fn drop(&mut self) {
        if self.own.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.outboxes.fetch_sub(1, Ordering::AcqRel);
            self.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outboxes_with_something_to_claim_share_the_slots() {
        let first = Slots::new(10, Arc::default());
        let second = first.shared();
        let hungry = [first.hungry(), first.hungry()];
        assert_eq!(first.fair_part(10), usize::MAX);
        let other = second.hungry();
        assert_eq!((first.fair_part(10), second.fair_part(1)), (5, 1));
        drop(hungry);
        assert_eq!(second.fair_part(10), usize::MAX);
        drop(other);
    }
}
