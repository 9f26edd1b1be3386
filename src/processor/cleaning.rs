//! Retention at work: completed and skipped events past their time are deleted, in bounded batches.
//!
//! A timer does it every minute where the program stays (`housekeeping`). Where it does not, because a scheduler calls it
//! and it sleeps in between, a run does it at its end: within a tenth of its budget and half of what is left of it, and
//! not when it has been done within the last minute. Each batch is one short statement that passes over locked rows, so
//! nobody waits for it and several instances may do it at once. An outbox without a retention is never cleaned; dead
//! letters and undelivered events never go. What fails here fails neither a run nor the timer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::Shared;
use crate::budget::Countdown;
use crate::metrics;
use crate::retention::Retention;

/// How often an instance cleans an outbox.
pub(crate) const PERIOD: Duration = Duration::from_mins(1);
/// Events that one statement deletes.
const BATCH: u32 = 1_000;
/// Batches at most at one time: the database has other things to do.
const BATCHES: u32 = 100;
/// How long the timer's turn may take.
const LONGEST: Duration = Duration::from_secs(30);
/// What part of its budget a run may spend on it, and what part of the rest.
const SHARE_OF_BUDGET: u32 = 10;
const SHARE_OF_REST: u32 = 2;
/// With less than this nothing is begun.
const LEAST: Duration = Duration::from_millis(20);

/// The cleaning of one outbox.
pub(super) struct Cleaning {
    retention: Option<Retention>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When it was last begun.
    begun: Option<Instant>,
    /// Whether it failed the last time: a failure is logged once.
    failing: bool,
}

impl Cleaning {
    pub(super) fn new(retention: Option<Retention>) -> Self {
        Self { retention, state: Mutex::default() }
    }

    pub(super) fn retention(&self) -> Option<Retention> {
        self.retention
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody who cleans now is not the second within a minute. If so, it counts as begun.
    fn begin_if_due(&self) -> bool {
        let mut state = self.state();
        let is_due = state.begun.is_none_or(|begun| begun.elapsed() >= PERIOD);
        if is_due {
            state.begun = Some(Instant::now());
        }
        is_due
    }
}

/// What a run deletes at its end; how many events that were.
pub(super) async fn clean_after_run(shared: &Shared, countdown: &Countdown) -> u64 {
    let patience = (countdown.max_runtime() / SHARE_OF_BUDGET).min(countdown.remaining() / SHARE_OF_REST);
    match shared.cleaning.retention() {
        Some(retention) if patience >= LEAST && shared.cleaning.begin_if_due() => {
            clean(shared, retention, patience).await
        }
        Some(_) | None => 0,
    }
}

/// What the timer deletes; how many events that were.
pub(super) async fn clean_by_timer(shared: &Shared) -> u64 {
    let Some(retention) = shared.cleaning.retention() else { return 0 };
    shared.cleaning.state().begun = Some(Instant::now());
    clean(shared, retention, LONGEST).await
}

/// Deletes what may go, while there is time, and says how much. A statement that is not waited for any longer still ends.
async fn clean(shared: &Shared, retention: Retention, patience: Duration) -> u64 {
    let begun = Instant::now();
    let mut purged = 0;
    let mut failure = None;
    for _ in 0..BATCHES {
        let rest = patience.saturating_sub(begun.elapsed());
        if rest.is_zero() || shared.stop.is_cancelled() {
            break;
        }
        match timeout(rest, shared.store.purge(retention.completed, retention.skipped, BATCH)).await {
            Ok(Ok(batch)) => {
                purged += batch;
                if batch < u64::from(BATCH) {
                    break;
                }
            }
            Ok(Err(error)) => {
                failure = Some(error);
                break;
            }
            Err(_) => break,
        }
    }
    let outbox: &str = &shared.outbox;
    metrics::purged(outbox, purged);
    if purged > 0 {
        let duration_ms = begun.elapsed().as_millis();
        tracing::info!(outbox, purged, duration_ms, "finished events past their retention were deleted");
    }
    let was_failing = std::mem::replace(&mut shared.cleaning.state().failing, failure.is_some());
    if let Some(error) = failure
        && !was_failing
    {
        tracing::error!(outbox, %error, "events past their retention could not be deleted; it is tried again in a minute");
    }
    purged
}
