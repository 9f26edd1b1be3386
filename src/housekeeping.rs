//! Retention: every minute, finished events that are older than their time are deleted, in bounded batches.
//!
//! Dead letters are never deleted by age. Several instances may do this at once. An outbox is cleaned only when it is
//! handed over here with a retention: nobody's table is by default.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::store::{Store, StoreError};

const PERIOD: Duration = Duration::from_mins(1);
const BATCH: u32 = 1_000;
/// Batches at most in one period: the database has other things to do.
const BATCHES: u32 = 100;

/// How long finished events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Completed ones.
    pub completed: Duration,
    /// Skipped ones.
    pub skipped: Duration,
}

impl Default for Retention {
    /// 7 and 30 days.
    fn default() -> Self {
        let day = Duration::from_hours(24);
        Self { completed: day * 7, skipped: day * 30 }
    }
}

/// An outbox to be kept clean.
pub struct Cleaned {
    /// Its name, for the log.
    pub outbox: String,
    /// Its events.
    pub store: Arc<dyn Store>,
    /// How long the finished ones are kept.
    pub retention: Retention,
}

/// Deletes until `shutdown` is cancelled, in each outbox by itself. A failure is logged once until a deletion succeeds
/// again.
pub async fn run(outboxes: Vec<Cleaned>, shutdown: CancellationToken) {
    join_all(outboxes.iter().map(|cleaned| clean(cleaned, &shutdown))).await;
    shutdown.cancelled().await;
}

async fn clean(Cleaned { outbox, store, retention }: &Cleaned, shutdown: &CancellationToken) {
    // Instances that were started together do not delete together.
    let mut pause = PERIOD.mul_f64(fastrand::f64());
    let mut failing = false;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        match purge(store.as_ref(), *retention, shutdown).await {
            Ok(deleted) => {
                failing = false;
                metrics::purged(outbox, deleted);
                if deleted > 0 {
                    tracing::info!(outbox, deleted, "finished events past their retention were deleted");
                }
            }
            Err(error) => {
                if !failing {
                    tracing::error!(outbox, error = %error, "events past their retention could not be deleted; it is tried every minute");
                }
                failing = true;
            }
        }
        pause = PERIOD;
    }
}

/// Deletes what is there, up to the limit of one period, and says how much.
async fn purge(store: &dyn Store, retention: Retention, shutdown: &CancellationToken) -> Result<u64, StoreError> {
    let mut deleted = 0;
    for _ in 0..BATCHES {
        let batch = store.purge(retention.completed, retention.skipped, BATCH).await?;
        deleted += batch;
        if batch < u64::from(BATCH) || shutdown.is_cancelled() {
            break;
        }
    }
    Ok(deleted)
}
