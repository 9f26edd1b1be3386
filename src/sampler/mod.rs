//! Counting what stands in the lanes, every now and then, and keeping what was counted.
//!
//! A count is bounded but not free, so it is made at least fifteen seconds after the last one and takes at most a twentieth
//! of the time where it succeeds. [`run`] does so while the service runs. A request that finds counts too old, because the
//! instance was asleep, has them renewed and waits, and so does any request where counting is quick; two at once are never
//! made. A request that goes away does not stop the count.

mod view;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use view::{LaneView, MinuteView, StatsView};

use crate::handler::Pattern;
use crate::metrics;
use crate::processor::{Outboxes, Processor};
use crate::run::{RunRecord, RunState, StopReason};
use crate::store::{Minute, RunPage, Stats, StoreError};
use crate::timestamp::Timestamp;

/// The least time from one count to the next.
const PERIOD: Duration = Duration::from_secs(15);
/// The part of the time that counting may take, of all outboxes together: one in so many.
const SHARE: u32 = 20;
/// How much later than the next count is due a request finds the last one too old: nobody is counting.
const GRACE: Duration = Duration::from_secs(5);
/// A count that takes no longer is made for whoever asks, instead of waiting for its time.
const QUICK: Duration = Duration::from_millis(10);
/// How long metrics wait for counts that are too old.
const SCRAPE_WAITS: Duration = Duration::from_millis(500);
/// A failure that took so long has kept the database busy.
const SLOW_FAILURE: Duration = Duration::from_secs(5);
/// How long after a slow failure the next request is told of it: not so long that nobody sees that the database is back.
const SLOW_FAILURE_HOLDS: Duration = Duration::from_secs(30);
/// How long after a quick failure the next request is told of it instead of asking again.
const FAILURE_HOLDS: Duration = Duration::from_secs(2);
/// How often what has ended is written down, and durations are put into their buckets.
const WRITE_EVERY: Duration = Duration::from_secs(10);
/// Runs among which the last successful one is looked for.
const RUNS_LOOKED_AT: u32 = 20;
/// Minutes of the chart.
const MINUTES: u16 = 60;

/// What was counted last, of every outbox. Cheap to clone.
#[derive(Clone)]
pub struct Sampler {
    shared: Arc<Shared>,
}

struct Shared {
    outboxes: Outboxes,
    watched: Vec<Watched>,
    /// Counts that requests have asked for.
    tasks: TaskTracker,
    last_successful_run: Mutex<Option<Timestamp>>,
}

/// One outbox and what is known of it.
struct Watched {
    processor: Processor,
    /// Whoever holds it counts.
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Last>,
}

/// How the last counts went.
#[derive(Default, Clone)]
struct Last {
    snapshot: Option<Arc<Snapshot>>,
    failed: Option<Failed>,
}

/// A count that failed.
#[derive(Clone)]
struct Failed {
    at: Instant,
    /// How long the next request is told of it instead of asking again: longer, the longer the failure took.
    holds: Duration,
    reason: String,
}

impl Failed {
    fn holds_still(&self) -> bool {
        self.at.elapsed() < self.holds
    }
}

/// What was counted in one outbox.
struct Snapshot {
    taken: Instant,
    took: Duration,
    /// How long after this count the next one is due.
    pause: Duration,
    stats: Stats,
    minutes: Vec<Minute>,
    last_run: Option<RunRecord>,
}

impl Snapshot {
    fn is_fresh(&self) -> bool {
        self.taken.elapsed() < self.pause + GRACE
    }

    /// Whether it answers a request, of one of so many outboxes. Counting for every request that comes still takes no more
    /// than its share of the time.
    fn serves(&self, outboxes: usize) -> bool {
        let is_young = self.taken.elapsed() < rest_after(self.took, outboxes);
        is_young || (self.took > QUICK && self.is_fresh())
    }

    /// How long it is until the next count is due.
    fn wait(&self) -> Duration {
        self.pause.saturating_sub(self.taken.elapsed())
    }
}

impl Sampler {
    /// A sampler that has counted nothing yet. Metrics exist from here on.
    pub fn new(outboxes: impl Into<Outboxes>) -> Self {
        let outboxes = outboxes.into();
        metrics::exporter::install(outboxes.iter().map(Processor::outbox));
        for (processor, event_type) in outboxes.iter().flat_map(named_types) {
            metrics::expect_lane(processor.outbox(), event_type);
        }
        let watch = |processor: &Processor| Watched {
            processor: processor.clone(),
            turn: tokio::sync::Mutex::default(),
            last: Mutex::default(),
        };
        let watched = outboxes.iter().map(watch).collect();
        let shared = Shared { outboxes, watched, tasks: TaskTracker::new(), last_successful_run: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The outboxes that it watches.
    #[must_use]
    pub fn outboxes(&self) -> &Outboxes {
        &self.shared.outboxes
    }

    /// Renews what is too old. What fails stays as it is, and [`Sampler::view`] says why; it is not tried again so soon, so
    /// that metrics come at once while a database is away.
    pub async fn renew_all(&self) {
        let may_succeed = |place: &usize| {
            let last = self.shared.last(*place);
            last.failed.as_ref().is_none_or(|failed| failed.at.elapsed() >= PERIOD + GRACE && !failed.holds_still())
        };
        let renewed = join_all((0..self.shared.watched.len()).filter(may_succeed).map(|place| self.fresh(place)));
        // What takes longer goes on, for the next one who asks.
        let _ = timeout(SCRAPE_WAITS, renewed).await;
    }

    /// Measures how connections are used, which changes too fast to be sampled.
    pub fn note_connections(&self) {
        for watched in &self.shared.watched {
            let figures = watched.processor.store().pool();
            metrics::connections(watched.processor.outbox(), figures.in_use, figures.idle, figures.max);
        }
    }

    /// What stands in the lanes of this outbox, or of all. One that cannot be counted does not hide the others.
    ///
    /// # Errors
    /// The counts are too old and could not be renewed, in none of them.
    pub async fn view(&self, outbox: Option<&str>) -> Result<StatsView, StoreError> {
        let is_asked_for = |place: &usize| {
            let name = self.shared.watched[*place].processor.outbox();
            outbox.is_none_or(|asked| asked == name)
        };
        let places = (0..self.shared.watched.len()).filter(is_asked_for);
        let snapshots =
            join_all(places.map(async |place| (&self.shared.watched[place].processor, self.fresh(place).await))).await;
        let mut failure = None;
        let mut found = Vec::with_capacity(snapshots.len());
        for (processor, snapshot) in snapshots {
            match snapshot {
                Ok(snapshot) => found.push((processor, Some(snapshot))),
                Err(error) => {
                    found.push((processor, None));
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(error) if found.iter().all(|(_, snapshot)| snapshot.is_none()) => Err(error),
            Some(_) | None => {
                Ok(StatsView::of(found.iter().map(|(processor, snapshot)| (*processor, snapshot.as_deref()))))
            }
        }
    }

    /// A snapshot that is not too old.
    async fn fresh(&self, place: usize) -> Result<Arc<Snapshot>, StoreError> {
        if let Some(known) = self.shared.known(place) {
            return known;
        }
        let shared = Arc::clone(&self.shared);
        let renewal = self.shared.tasks.spawn(async move { shared.renewed(place).await });
        renewal.await.unwrap_or_else(|error| {
            Err(StoreError::Internal { reason: "the count panicked".to_owned(), source: Some(Box::new(error)) })
        })
    }
}

impl Shared {
    fn last(&self, place: usize) -> std::sync::MutexGuard<'_, Last> {
        self.watched[place].last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be answered without asking the database.
    fn known(&self, place: usize) -> Option<Result<Arc<Snapshot>, StoreError>> {
        let last = self.last(place).clone();
        if let Some(snapshot) = last.snapshot.filter(|snapshot| snapshot.serves(self.watched.len())) {
            return Some(Ok(snapshot));
        }
        let failed = last.failed.filter(Failed::holds_still)?;
        Some(Err(StoreError::Unavailable { reason: failed.reason, source: None }))
    }

    /// Counts, unless somebody has done so while this one waited for its turn.
    async fn renewed(&self, place: usize) -> Result<Arc<Snapshot>, StoreError> {
        let _turn = self.watched[place].turn.lock().await;
        match self.known(place) {
            Some(known) => known,
            None => self.count(place).await,
        }
    }

    async fn count(&self, place: usize) -> Result<Arc<Snapshot>, StoreError> {
        let begun = Instant::now();
        match self.snapshot(place).await {
            Ok((snapshot, last_success)) => {
                let snapshot = Arc::new(snapshot);
                *self.last(place) = Last { snapshot: Some(Arc::clone(&snapshot)), failed: None };
                self.measure(place, &snapshot, last_success);
                Ok(snapshot)
            }
            Err(error) => {
                // A database that is gone says so at once and may be back at once; one that is too slow is let alone.
                let took = begun.elapsed();
                let is_slow = took >= SLOW_FAILURE;
                let holds = if is_slow { SLOW_FAILURE_HOLDS } else { FAILURE_HOLDS };
                self.last(place).failed = Some(Failed { at: Instant::now(), holds, reason: error.to_string() });
                Err(error)
            }
        }
    }

    /// Asks one outbox; also when its last run without an error ended.
    async fn snapshot(&self, place: usize) -> Result<(Snapshot, Option<Timestamp>), StoreError> {
        let processor = &self.watched[place].processor;
        let (store, taken) = (processor.store(), Instant::now());
        let stats = store.stats().await?;
        let minutes = store.minutes(processor.outbox(), MINUTES).await?;
        let runs = store.runs(&RunPage { after: None, limit: RUNS_LOOKED_AT }).await?;
        let last_success = runs.iter().find_map(ended_well);
        let took = taken.elapsed();
        let pause = pause_after(took, self.watched.len());
        let snapshot = Snapshot { taken, took, pause, stats, minutes, last_run: runs.into_iter().next() };
        Ok((snapshot, last_success))
    }

    /// Makes a count, unless a request has had it made meanwhile.
    async fn count_when_due(&self, place: usize) -> Result<Arc<Snapshot>, StoreError> {
        let _turn = self.watched[place].turn.lock().await;
        let known = self.last(place).snapshot.clone();
        match known.filter(|snapshot| !snapshot.wait().is_zero()) {
            Some(known) => Ok(known),
            None => self.count(place).await,
        }
    }

    fn measure(&self, place: usize, snapshot: &Snapshot, last_success: Option<Timestamp>) {
        let processor = &self.watched[place].processor;
        let lanes = snapshot.stats.lanes.iter().map(|lane| metrics::Lane {
            event_type: &lane.event_type,
            due: lane.due,
            scheduled: lane.scheduled,
            processing: lane.processing,
            dead_letter: lane.dead_letter,
            oldest_due_seconds: lane.oldest_due_micros.map_or(0.0, seconds),
            routed: processor.registry().route_for(&lane.event_type).is_some(),
        });
        metrics::lanes(processor.outbox(), lanes);
        let as_of = |place: usize| self.last(place).snapshot.as_ref().map(|snapshot| snapshot.stats.as_of);
        let oldest: Option<Vec<Timestamp>> = (0..self.watched.len()).map(as_of).collect();
        if let Some(oldest) = oldest.and_then(|all| all.into_iter().min()) {
            metrics::stats_succeeded(seconds(oldest.as_micros()));
        }
        let mut known = self.last_successful_run.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (*known).max(last_success);
        if let Some(at) = *known {
            metrics::last_successful_run(seconds(at.as_micros()));
        }
    }
}

/// The types that routes name, each with the outbox that it is of.
fn named_types(processor: &Processor) -> impl Iterator<Item = (&Processor, &str)> {
    let patterns = processor.registry().routes().iter().flat_map(|route| &route.types);
    patterns.filter_map(move |pattern| match pattern {
        Pattern::Exact(event_type) => Some((processor, event_type.as_str())),
        Pattern::Prefix(_) | Pattern::All => None,
    })
}

/// How long to leave a database alone that has just counted for so long, one of so many outboxes.
fn pause_after(took: Duration, outboxes: usize) -> Duration {
    PERIOD.max(rest_after(took, outboxes))
}

/// What of the time is not for counting, after a count that took so long.
fn rest_after(took: Duration, outboxes: usize) -> Duration {
    took.saturating_mul(SHARE.saturating_mul(u32::try_from(outboxes).unwrap_or(u32::MAX)).saturating_sub(1))
}

#[allow(clippy::cast_precision_loss, reason = "microseconds since 1970 stay below 2^53 for two hundred years")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// When a run ended, if it ended without an error.
fn ended_well(run: &RunRecord) -> Option<Timestamp> {
    let report = &run.report;
    let is_well = report.state == RunState::Finished && report.stop_reason != Some(StopReason::Error);
    let took = i64::try_from(report.duration_ms).unwrap_or(0).saturating_mul(1_000);
    is_well.then(|| Timestamp::from_micros(run.started_at.as_micros().saturating_add(took)))
}

/// Counts every outbox until `shutdown` is cancelled, each by itself, and writes down what has ended. A failure is logged
/// once until a count succeeds again.
pub async fn run(sampler: Sampler, shutdown: CancellationToken) {
    let shared = &sampler.shared;
    let counting = join_all((0..shared.watched.len()).map(|place| watch(shared, place, &shutdown)));
    tokio::join!(counting, write_down(&shared.outboxes, &shutdown));
    shared.tasks.close();
    shared.tasks.wait().await;
}

async fn watch(shared: &Shared, place: usize, shutdown: &CancellationToken) {
    let mut failing = false;
    while !shutdown.is_cancelled() {
        let counted = tokio::select! {
            () = shutdown.cancelled() => return,
            counted = shared.count_when_due(place) => counted,
        };
        let outbox = shared.watched[place].processor.outbox();
        let pause = match &counted {
            Ok(snapshot) => snapshot.wait(),
            Err(error) => {
                if !failing {
                    tracing::error!(outbox, %error, "events could not be counted; it is tried every few seconds");
                }
                let failed = shared.last(place).failed.clone();
                failed.map_or(PERIOD, |failed| failed.holds.max(PERIOD))
            }
        };
        failing = counted.is_err();
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn write_down(outboxes: &Outboxes, shutdown: &CancellationToken) {
    while !shutdown.is_cancelled() {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(WRITE_EVERY) => {}
        }
        outboxes.iter().for_each(Processor::write_down_minute);
        metrics::exporter::upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_takes_a_twentieth_of_the_time_at_most_however_many_outboxes_there_are() {
        let second = Duration::from_secs(1);
        assert_eq!(pause_after(second / 100, 1), PERIOD);
        assert_eq!(pause_after(second, 1), second * 19);
        assert_eq!(pause_after(second, 3), second * 59);
        assert_eq!(rest_after(second / 1000, 2), second * 39 / 1000);
    }
}
