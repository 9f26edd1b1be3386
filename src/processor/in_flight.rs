//! How many events of each type an instance has in its handlers' hands, over all its runs, the claims under way included.
//!
//! Counting is by holds that give back what they hold when they are dropped, so that nothing that fails can leave a
//! count behind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::store::LaneClaim;

/// The counts, and who waits for them to fall.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    by_type: Mutex<Counts>,
    freed: Arc<Notify>,
}

/// A count for each type that is held. They grow only under the lock, and fall whenever a hold is dropped.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<String, Arc<AtomicUsize>>);

/// So many events of one type, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    counted: Arc<AtomicUsize>,
    freed: Arc<Notify>,
    count: usize,
}

impl Counts {
    /// How many events of this type are held.
    pub(super) fn of(&self, event_type: &str) -> usize {
        self.0.get(event_type).map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// Forgets types of which nothing is held any more, so that they do not pile up.
    fn prune(&mut self) {
        self.0.retain(|_, count| Arc::strong_count(count) > 1);
    }
}

impl InFlight {
    /// Counts for another outbox of the same instance: whoever waits hears of both.
    pub(super) fn shared(&self) -> Self {
        Self { by_type: Mutex::default(), freed: Arc::clone(&self.freed) }
    }

    /// Told when a count falls.
    pub(super) fn notify(&self) -> Arc<Notify> {
        Arc::clone(&self.freed)
    }

    /// How many events are held altogether.
    pub(super) fn total(&self) -> usize {
        self.counts().0.values().map(|count| count.load(Ordering::Acquire)).sum()
    }

    /// Counts one event.
    pub(super) fn hold(&self, event_type: &str) -> Hold {
        let mut counts = self.counts();
        self.add(&mut counts, event_type, 1)
    }

    /// Makes a plan that depends on the counts and counts what it is about to claim, in one step.
    pub(super) fn plan(&self, plan: impl FnOnce(&Counts) -> Vec<LaneClaim>) -> (Vec<LaneClaim>, Vec<Hold>) {
        let mut counts = self.counts();
        counts.prune();
        let claims = plan(&counts);
        let holds = claims.iter().map(|claim| self.add(&mut counts, &claim.event_type, claim.limit as usize)).collect();
        (claims, holds)
    }

    /// Waits until a count falls. One that falls just before this is called may be missed.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn add(&self, counts: &mut Counts, event_type: &str, count: usize) -> Hold {
        let counted = match counts.0.get(event_type) {
            Some(counted) => Arc::clone(counted),
            None => Arc::clone(counts.0.entry(event_type.to_owned()).or_default()),
        };
        counted.fetch_add(count, Ordering::AcqRel);
        Hold { counted, freed: Arc::clone(&self.freed), count }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.by_type.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    /// One of the events, to be counted on its own from now on.
    pub(super) fn split(&mut self) -> Option<Self> {
        self.count = self.count.checked_sub(1)?;
        Some(Self { counted: Arc::clone(&self.counted), freed: Arc::clone(&self.freed), count: 1 })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.count > 0 {
            self.counted.fetch_sub(self.count, Ordering::AcqRel);
            self.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted_until_the_last_part_is_dropped() {
        let counts = InFlight::default();
        let claim = LaneClaim { event_type: "a".to_owned(), limit: 2, from: None, lease: std::time::Duration::ZERO };
        let (_, mut holds) = counts.plan(|_| vec![claim]);
        let one = counts.hold("a");
        assert_eq!(counts.counts().of("a"), 3);
        let split = holds[0].split();
        drop(holds);
        assert_eq!(counts.counts().of("a"), 2);
        drop((one, split));
        assert_eq!(counts.counts().of("a"), 0);
    }

    #[test]
    fn types_that_are_held_no_more_are_forgotten() {
        let counts = InFlight::default();
        let held = counts.hold("held");
        drop(counts.hold("gone"));
        counts.plan(|_| Vec::new());
        assert_eq!(counts.counts().0.keys().collect::<Vec<_>>(), ["held"]);
        drop(held);
    }

    #[test]
    fn a_hold_cannot_be_split_further_than_its_count() {
        let mut one = InFlight::default().hold("a");
        assert_eq!(one.split().map(|hold| hold.count), Some(1));
        assert!(one.split().is_none());
    }
}
