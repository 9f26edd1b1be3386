//! How many events of each type an instance has in its handlers' hands, over all its runs, the claims under way included.
//!
//! Counting is by holds that give back what they hold when they are dropped, so that nothing that fails can leave a
//! count behind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::store::LaneClaim;

/// The counts, and who waits for them to fall.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    by_type: Mutex<HashMap<String, usize>>,
    freed: Notify,
}

/// So many events of one type, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    counts: Arc<InFlight>,
    event_type: String,
    count: usize,
}

impl InFlight {
    /// Counts one event.
    pub(super) fn hold(self: &Arc<Self>, event_type: &str) -> Hold {
        let mut counts = self.counts();
        self.add(&mut counts, event_type, 1)
    }

    /// Makes a plan that depends on the counts and counts what it is about to claim, in one step.
    pub(super) fn plan(
        self: &Arc<Self>,
        plan: impl FnOnce(&HashMap<String, usize>) -> Vec<LaneClaim>,
    ) -> (Vec<LaneClaim>, Vec<Hold>) {
        let mut counts = self.counts();
        let claims = plan(&counts);
        let holds = claims.iter().map(|claim| self.add(&mut counts, &claim.event_type, claim.limit as usize)).collect();
        (claims, holds)
    }

    /// Waits until a count falls. One that falls just before this is called may be missed.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn add(self: &Arc<Self>, counts: &mut HashMap<String, usize>, event_type: &str, count: usize) -> Hold {
        *counts.entry(event_type.to_owned()).or_default() += count;
        Hold { counts: Arc::clone(self), event_type: event_type.to_owned(), count }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.by_type.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    /// The type that is held.
    pub(super) fn event_type(&self) -> &str {
        &self.event_type
    }

    /// One of the events, to be counted on its own from now on.
    pub(super) fn split(&mut self) -> Option<Self> {
        self.count = self.count.checked_sub(1)?;
        Some(Self { counts: Arc::clone(&self.counts), event_type: self.event_type.clone(), count: 1 })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut counts = self.counts.counts();
        if let Some(held) = counts.get_mut(&self.event_type) {
            *held = held.saturating_sub(self.count);
            if *held == 0 {
                counts.remove(&self.event_type);
            }
        }
        drop(counts);
        self.counts.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted_until_the_last_part_is_dropped() {
        let counts = Arc::new(InFlight::default());
        let claim = LaneClaim { event_type: "a".to_owned(), limit: 2, from: None, lease: std::time::Duration::ZERO };
        let (_, mut holds) = counts.plan(|_| vec![claim]);
        let one = counts.hold("a");
        assert_eq!(counts.counts().get("a"), Some(&3));
        let split = holds[0].split();
        drop(holds);
        assert_eq!(counts.counts().get("a"), Some(&2));
        drop((one, split));
        assert!(counts.counts().is_empty());
    }

    #[test]
    fn a_hold_cannot_be_split_further_than_its_count() {
        let mut one = Arc::new(InFlight::default()).hold("a");
        assert_eq!(one.split().map(|hold| hold.count), Some(1));
        assert!(one.split().is_none());
    }
}
