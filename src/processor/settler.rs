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
use super::spans::SettleSpan;
use crate::lease::Lease;
use crate::outcome::{Change, Settlement};
use crate::span::SpanContext;
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

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was written.
    Applied,
    /// Its lease was lost, or its row can never be written: it changed nothing.
    Lost,
    /// It is still being written: the database failed, or its row is locked.
    Later,
}

/// What became of a batch.
pub(super) struct Settled {
    /// The settlements that were asked for, each with its fate.
    pub(super) settlements: Vec<(Settlement, Fate)>,
    /// How the database failed.
    pub(super) failure: Option<StoreError>,
}

/// How long a batch is tried, and what its statements are parts of.
#[derive(Clone, Copy)]
struct Effort {
    until: Instant,
    span: Option<SpanContext>,
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
/// `span` is what the statements are parts of.
pub(super) async fn settle(
    shared: &Arc<Shared>,
    settlements: Vec<Settlement>,
    patience: Duration,
    span: Option<SpanContext>,
) -> Settled {
    let settled = write(shared, settlements, patience, span).await;
    let left = settled.with_fate(Fate::Later);
    if !left.is_empty() && !shared.cut_off.is_cancelled() {
        let shared = Arc::clone(shared);
        shared.clone().tasks.spawn(async move { write_later(&shared, left, span).await });
    }
    settled
}

async fn write_later(shared: &Shared, left: Vec<Settlement>, span: Option<SpanContext>) {
    let count = left.len();
    tracing::warn!(count, "settlements could not be written in time and are tried on");
    let settled = write(shared, left, LATER_PATIENCE, span).await;
    let (written, given_up) = (settled.count(Fate::Applied), settled.count(Fate::Later));
    if given_up > 0 {
        settled.with_fate(Fate::Later).iter().for_each(|settlement| shared.tally.forget(settlement));
        tracing::error!(written, given_up, "settlements were given up; their leases will be taken back");
    } else {
        tracing::info!(written, "settlements that had to wait are written");
    }
}

async fn write(
    shared: &Shared,
    settlements: Vec<Settlement>,
    patience: Duration,
    span: Option<SpanContext>,
) -> Settled {
    let effort = Effort { until: Instant::now() + patience, span };
    let mut fates = Fates { of_each: Vec::with_capacity(settlements.len()), failure: None };
    for batch in settlements.chunks(MAX_BATCH) {
        match persist(shared, batch, effort, None).await {
            Written::Unknown(StoreError::Locked { .. }) | Written::Refused(_) if batch.len() > 1 => {
                tracing::warn!(count = batch.len(), "settlements are written one by one: a row is locked or refused");
                write_each(shared, batch, effort, &mut fates).await;
            }
            Written::Unknown(locked @ StoreError::Locked { .. }) => {
                fates.note(batch, persist(shared, batch, effort, Some(locked)).await);
            }
            written => fates.note(batch, written),
        }
    }
    let settled = Settled { settlements: settlements.into_iter().zip(fates.of_each).collect(), failure: fates.failure };
    settled.log_dead_letters(&shared.outbox);
    settled.tally(shared);
    settled
}

/// Writes each by itself: first all those that nobody has locked, then those whose lock has to be waited for.
async fn write_each(shared: &Shared, batch: &[Settlement], effort: Effort, fates: &mut Fates) {
    let first = fates.of_each.len();
    let mut locked = Vec::new();
    for (place, one) in batch.chunks(1).enumerate() {
        match persist(shared, one, effort, None).await {
            Written::Unknown(error @ StoreError::Locked { .. }) => {
                locked.push((place, one, error));
                fates.of_each.push(Fate::Later);
            }
            written => fates.note(one, written),
        }
    }
    for (place, one, error) in locked {
        let written = persist(shared, one, effort, Some(error)).await;
        fates.of_each[first + place] = fates.judge(one, written).into_iter().next().unwrap_or(Fate::Later);
    }
}

/// The fates of the settlements so far, in their order.
struct Fates {
    of_each: Vec<Fate>,
    failure: Option<StoreError>,
}

impl Fates {
    fn note(&mut self, batch: &[Settlement], written: Written) {
        let fates = self.judge(batch, written);
        self.of_each.extend(fates);
    }

    fn judge(&mut self, batch: &[Settlement], written: Written) -> Vec<Fate> {
        match written {
            Written::Applied(leases) if leases.len() == batch.len() => vec![Fate::Applied; batch.len()],
            Written::Applied(leases) => {
                let applied: HashSet<Lease> = leases.into_iter().collect();
                let fate = |settlement: &Settlement| {
                    if applied.contains(&settlement.lease) { Fate::Applied } else { Fate::Lost }
                };
                batch.iter().map(fate).collect()
            }
            Written::Unknown(error) => {
                // A row that somebody has locked is no failure of the database.
                if !matches!(error, StoreError::Locked { .. }) {
                    self.failure.get_or_insert(error);
                }
                vec![Fate::Later; batch.len()]
            }
            Written::Refused(error) => {
                for settlement in batch {
                    tracing::error!(%error, event_id = %settlement.lease.event_id, "a settlement was refused");
                }
                vec![Fate::Lost; batch.len()]
            }
        }
    }
}

impl Settled {
    /// How many have this fate.
    pub(super) fn count(&self, wanted: Fate) -> usize {
        self.settlements.iter().filter(|(_, fate)| *fate == wanted).count()
    }

    fn with_fate(&self, wanted: Fate) -> Vec<Settlement> {
        let of_that_fate = self.settlements.iter().filter(|(_, fate)| *fate == wanted);
        of_that_fate.map(|(settlement, _)| settlement.clone()).collect()
    }

    /// Counts what was written and what came too late.
    fn tally(&self, shared: &Shared) {
        for (settlement, fate) in &self.settlements {
            match fate {
                Fate::Applied => shared.tally.note_applied(settlement),
                Fate::Lost => shared.tally.note_lost(settlement),
                Fate::Later => {}
            }
        }
    }

    /// One line for each event that will not be tried again: what somebody looks for at night.
    fn log_dead_letters(&self, outbox: &str) {
        for (settlement, fate) in &self.settlements {
            if let (Change::DeadLetter { error, .. }, Fate::Applied) = (&settlement.change, fate) {
                tracing::warn!(event_id = %settlement.lease.event_id, outbox, error, "an event has become a dead letter");
            }
        }
    }
}

/// Runs one statement, again and again while it only fails for now. A row that turns out to be locked is given back at
/// once; with `locked`, what was said of it before, it is waited for.
async fn persist(shared: &Shared, batch: &[Settlement], effort: Effort, locked: Option<StoreError>) -> Written {
    let waits_for_lock = locked.is_some();
    let mut last = locked;
    let mut pause = FIRST_PAUSE;
    loop {
        let span = SettleSpan::begin(shared, effort.span);
        let result = tokio::select! {
            biased;
            result = timeout_at(effort.until, shared.store.settle(batch)) => result.ok(),
            () = last_moment(shared) => None,
        };
        if let Some(span) = span {
            span.ended(batch.len(), result.as_ref());
        }
        let error = match result {
            Some(Ok(leases)) => return Written::Applied(leases),
            Some(Err(error)) if !error.is_transient() => return Written::Refused(error),
            Some(Err(error)) => error,
            None => return Written::Unknown(last.unwrap_or_else(late)),
        };
        let is_locked = matches!(error, StoreError::Locked { .. });
        if (is_locked && !waits_for_lock) || Instant::now() + pause >= effort.until {
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
