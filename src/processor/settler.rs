//! Writing what came of attempts, many in one statement, and telling each apart that can never be written.
//!
//! What has been delivered should not be delivered again only because the database blinked or somebody has locked a row:
//! a settlement is tried again while its caller has patience, and then, on a task of its own, a while longer. A row that
//! the database refuses, or that is locked, is written alone, so that it cannot hold up the others.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Shared;
use crate::lease::Lease;
use crate::outcome::{Change, Settlement};
use crate::store::StoreError;

/// The pause before a settlement is tried again, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long what its caller could not wait for is tried afterwards: as long as a lease outlasts its handler.
const LATER_PATIENCE: Duration = Duration::from_secs(30);
/// How long a settlement is tried once a shutdown waits no longer.
const LAST_PATIENCE: Duration = Duration::from_millis(1_500);

/// Settlements that one statement writes.
pub(super) const MAX_BATCH: usize = 500;

/// What became of a batch.
pub(super) struct Settled {
    /// The settlements that were asked for.
    pub(super) settlements: Vec<Settlement>,
    /// The leases that were applied.
    pub(super) applied: HashSet<Lease>,
    /// The leases that are still being written: the database failed, or their rows are locked.
    pub(super) later: HashSet<Lease>,
    /// How the database failed.
    pub(super) failure: Option<StoreError>,
}

/// What one statement came to.
enum Written {
    /// These leases were applied; the others were lost.
    Applied(Vec<Lease>),
    /// Nobody knows yet: patience ran out.
    Unknown(StoreError),
    /// Some row can never be written.
    Refused(StoreError),
}

/// Writes settlements with so much patience; what is left then is written later, if at all.
pub(super) async fn settle(shared: &Arc<Shared>, settlements: Vec<Settlement>, patience: Duration) -> Settled {
    let settled = write(shared, settlements, patience).await;
    let is_left = |settlement: &&Settlement| settled.later.contains(&settlement.lease);
    let left: Vec<Settlement> = settled.settlements.iter().filter(is_left).cloned().collect();
    if !left.is_empty() && !shared.cut_off.is_cancelled() {
        let shared = Arc::clone(shared);
        shared.clone().tasks.spawn(async move { write_later(&shared, left).await });
    }
    settled
}

async fn write_later(shared: &Shared, left: Vec<Settlement>) {
    let count = left.len();
    tracing::warn!(count, "settlements could not be written in time and are tried on");
    let settled = write(shared, left, LATER_PATIENCE).await;
    let (written, given_up) = (settled.applied.len(), settled.later.len());
    if given_up > 0 {
        tracing::error!(written, given_up, "settlements were given up; their leases will be taken back");
    } else {
        tracing::info!(written, "settlements that had to wait are written");
    }
}

async fn write(shared: &Shared, settlements: Vec<Settlement>, patience: Duration) -> Settled {
    let until = Instant::now() + patience;
    let mut settled =
        Settled { settlements: Vec::new(), applied: HashSet::new(), later: HashSet::new(), failure: None };
    for batch in settlements.chunks(MAX_BATCH) {
        match persist(shared, batch, until, None).await {
            Written::Unknown(StoreError::Locked { .. }) | Written::Refused(_) if batch.len() > 1 => {
                tracing::warn!(count = batch.len(), "settlements are written one by one: a row is locked or refused");
                write_each(shared, batch, until, &mut settled).await;
            }
            Written::Unknown(locked @ StoreError::Locked { .. }) => {
                settled.take(batch, persist(shared, batch, until, Some(locked)).await);
            }
            written => settled.take(batch, written),
        }
    }
    log_dead_letters(&settlements, &settled.applied);
    Settled { settlements, ..settled }
}

/// Writes each by itself: first all those that nobody has locked, then those whose lock has to be waited for.
async fn write_each(shared: &Shared, batch: &[Settlement], until: Instant, settled: &mut Settled) {
    let mut locked = Vec::new();
    for one in batch.chunks(1) {
        match persist(shared, one, until, None).await {
            Written::Unknown(error @ StoreError::Locked { .. }) => locked.push((one, error)),
            written => settled.take(one, written),
        }
    }
    for (one, error) in locked {
        settled.take(one, persist(shared, one, until, Some(error)).await);
    }
}

impl Settled {
    fn take(&mut self, batch: &[Settlement], written: Written) {
        match written {
            Written::Applied(leases) => self.applied.extend(leases),
            Written::Unknown(error) => {
                self.later.extend(batch.iter().map(|settlement| settlement.lease));
                // A row that somebody has locked is no failure of the database.
                if !matches!(error, StoreError::Locked { .. }) {
                    self.failure.get_or_insert(error);
                }
            }
            Written::Refused(error) => {
                for settlement in batch {
                    tracing::error!(%error, event_id = %settlement.lease.event_id, "a settlement was refused");
                }
            }
        }
    }
}

/// One line for each event that will not be tried again: what somebody looks for at night.
fn log_dead_letters(settlements: &[Settlement], applied: &HashSet<Lease>) {
    for settlement in settlements.iter().filter(|settlement| applied.contains(&settlement.lease)) {
        if let Change::DeadLetter { .. } = settlement.change {
            tracing::warn!(event_id = %settlement.lease.event_id, "an event has become a dead letter");
        }
    }
}

/// Runs one statement, again and again while it only fails for now. A row that turns out to be locked is given back at
/// once; with `locked`, what was said of it before, it is waited for.
async fn persist(shared: &Shared, batch: &[Settlement], until: Instant, locked: Option<StoreError>) -> Written {
    let waits_for_lock = locked.is_some();
    let mut last = locked;
    let mut pause = FIRST_PAUSE;
    loop {
        let result = tokio::select! {
            biased;
            result = timeout_at(until, shared.store.settle(batch)) => result.ok(),
            () = last_moment(shared) => None,
        };
        let error = match result {
            Some(Ok(leases)) => return Written::Applied(leases),
            Some(Err(error)) if !error.is_transient() => return Written::Refused(error),
            Some(Err(error)) => error,
            None => return Written::Unknown(last.unwrap_or_else(late)),
        };
        let is_locked = matches!(error, StoreError::Locked { .. });
        if (is_locked && !waits_for_lock) || Instant::now() + pause >= until {
            return Written::Unknown(error);
        }
        tracing::warn!(%error, count = batch.len(), "settlements could not be written and are tried again");
        last = Some(error);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A while after a shutdown has stopped waiting for handlers; never, while there is none.
async fn last_moment(shared: &Shared) {
    shared.cut_off.cancelled().await;
    tokio::time::sleep(LAST_PATIENCE).await;
}

fn late() -> StoreError {
    StoreError::Unavailable { reason: "it did not answer in time".to_owned(), source: None }
}
