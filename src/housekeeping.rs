//! Retention by the clock: every minute, finished events that are older than their time are deleted.
//!
//! What may be deleted, and how, is told by [`Processor::purge`]; runs do the same at their end, for programs that do not
//! stay. Several instances may do this at once. An outbox without a retention is left alone: nobody's table has one by
//! default.

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::processor::{Outboxes, PURGE_PERIOD, Processor};

/// Deletes until `shutdown` is cancelled, in each outbox by itself.
pub async fn run(outboxes: Outboxes, shutdown: CancellationToken) {
    let cleaned = outboxes.iter().filter(|processor| processor.retention().is_some());
    join_all(cleaned.map(|processor| clean(processor, &shutdown))).await;
    shutdown.cancelled().await;
}

async fn clean(processor: &Processor, shutdown: &CancellationToken) {
    // Instances that were started together do not delete together.
    let mut pause = PURGE_PERIOD.mul_f64(fastrand::f64());
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        processor.purge().await;
        pause = PURGE_PERIOD;
    }
}
