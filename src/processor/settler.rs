//! Writing what came of attempts, many in one statement, and telling each apart that can never be written.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::Shared;
use crate::lease::Lease;
use crate::outcome::{Change, Settlement};
use crate::store::StoreError;

/// The pause before a settlement is tried again, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a settlement is tried once a shutdown waits no longer.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Settlements that one statement writes.
pub(super) const MAX_BATCH: usize = 500;

/// What became of a batch.
pub(super) struct Settled {
    /// The settlements that were asked for.
    pub(super) settlements: Vec<Settlement>,
    /// The leases that were applied.
    pub(super) applied: HashSet<Lease>,
    /// The database failed for so long that the rest was given up; their leases will be taken back.
    pub(super) failure: Option<StoreError>,
}

/// Writes settlements. While the database is away it tries again, for at most `patience`: what has been delivered
/// should not be delivered again only because the database blinked. A row that the database refuses is written alone,
/// so that it cannot hold up the others.
pub(super) async fn settle(shared: &Shared, settlements: Vec<Settlement>, patience: Duration) -> Settled {
    let began = Instant::now();
    let mut applied = HashSet::with_capacity(settlements.len());
    let mut failure = None;
    for batch in settlements.chunks(MAX_BATCH) {
        match persist(shared, batch, began, patience).await {
            Ok(leases) => applied.extend(leases),
            Err(error) if error.is_transient() => failure = Some(error),
            Err(error) => {
                tracing::error!(%error, count = batch.len(), "settlements were refused and are written one by one");
                for one in batch.chunks(1) {
                    match persist(shared, one, began, patience).await {
                        Ok(leases) => applied.extend(leases),
                        Err(error) if error.is_transient() => failure = Some(error),
                        Err(error) => {
                            tracing::error!(%error, event_id = %one[0].lease.event_id, "a settlement was refused");
                        }
                    }
                }
            }
        }
    }
    log_dead_letters(&settlements, &applied);
    Settled { settlements, applied, failure }
}

/// One line for each event that will not be tried again: what somebody looks for at night.
fn log_dead_letters(settlements: &[Settlement], applied: &HashSet<Lease>) {
    for settlement in settlements.iter().filter(|settlement| applied.contains(&settlement.lease)) {
        if let Change::DeadLetter { .. } = settlement.change {
            tracing::warn!(event_id = %settlement.lease.event_id, "an event has become a dead letter");
        }
    }
}

async fn persist(
    shared: &Shared,
    batch: &[Settlement],
    began: Instant,
    patience: Duration,
) -> Result<Vec<Lease>, StoreError> {
    let mut pause = FIRST_PAUSE;
    loop {
        let result = shared.store.settle(batch).await;
        let patience = if shared.cut_off.is_cancelled() { patience.min(LAST_PATIENCE) } else { patience };
        match result {
            Err(error) if error.is_transient() && began.elapsed() + pause < patience => {
                tracing::warn!(%error, count = batch.len(), "settlements could not be written and are tried again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            result => return result,
        }
    }
}
