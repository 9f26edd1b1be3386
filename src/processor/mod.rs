//! The workflow: one bounded run over everything that is due, or one event by its id right after its commit.
//!
//! HTTP, the command line, the poller, tests and library users all call the same two functions, [`Processor::run`] and
//! [`Processor::process_event`]. Both live on tasks of their own: a caller that goes away stops further claims but never
//! a delivery that has begun. The life of an event reads downwards in [`run`]: sweep, claim, start, settle, report.

mod attempt;
mod batch;
mod by_id;
mod by_token;
mod cleaning;
mod in_flight;
mod lanes;
mod outboxes;
mod plan;
mod request;
mod run;
mod settings;
mod settler;
mod slots;
mod spans;
mod sweep;
mod tally;
mod together;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use cleaning::PERIOD as PURGE_PERIOD;
pub use outboxes::{DEFAULT_OUTBOX, OutboxParts, Outboxes, OutboxesError, UnknownOutbox};
pub use request::{ProcessEventError, Processed, ProcessedOutcome, RunError, RunRequest, TokenError};
pub use settings::{LeasePolicy, ProcessorSettings, SettingsError};

use self::cleaning::Cleaning;
use self::in_flight::InFlight;
use self::lanes::Lanes;
use self::run::Run;
use self::slots::Slots;
use self::sweep::LeftBehind;
use self::tally::Tally;
use crate::event::EventId;
use crate::handler::Registry;
use crate::lease::ClaimKey;
use crate::outcome::Outcome;
use crate::retention::Retention;
use crate::run::RunReport;
use crate::store::{Store, StoreError};

/// How long work that was cut off may take to be settled.
const LAST_SETTLE: Duration = Duration::from_secs(5);

/// Claims, delivers and settles. Cheap to clone; all clones share their slots.
#[derive(Clone)]
pub struct Processor {
    shared: Arc<Shared>,
}

/// What all runs of an instance have in common.
struct Shared {
    outbox: Arc<str>,
    store: Arc<dyn Store>,
    registry: Arc<Registry>,
    settings: ProcessorSettings,
    /// One for each handler that may run.
    slots: Slots,
    in_flight: Arc<InFlight>,
    /// Read from the database before the first claim.
    claim_key: OnceCell<ClaimKey>,
    lanes: Mutex<Lanes>,
    left_behind: Mutex<LeftBehind>,
    cleaning: Cleaning,
    tally: Tally,
    tasks: TaskTracker,
    /// No further claims.
    stop: CancellationToken,
    /// No further waiting for handlers.
    cut_off: CancellationToken,
}

/// What the outboxes of an instance have in common, as one of them sees it.
struct Common {
    slots: Slots,
    in_flight: InFlight,
    tasks: TaskTracker,
    stop: CancellationToken,
    cut_off: CancellationToken,
}

impl Shared {
    /// The key of claim tokens; asked for once.
    async fn claim_key(&self) -> Result<&ClaimKey, StoreError> {
        self.claim_key.get_or_try_init(|| self.store.claim_key()).await
    }

    /// The lanes' memory. It holds hints only, so one that a panic left half changed is as good as any.
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left_behind(&self) -> MutexGuard<'_, LeftBehind> {
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a sweep is worth its time now: none is going on for everybody, and slow ones have had their share.
    fn may_sweep(&self) -> bool {
        self.lanes().may_sweep() && !self.left_behind().is_under_way()
    }
}

impl Processor {
    /// Puts a store and the routes together.
    ///
    /// # Errors
    /// Settings under which events would run twice or never.
    pub fn new(store: Arc<dyn Store>, registry: Registry, settings: ProcessorSettings) -> Result<Self, SettingsError> {
        settings.check(&registry)?;
        Ok(Self::alone(DEFAULT_OUTBOX, store, registry, settings))
    }

    /// The first outbox of an instance.
    fn alone(outbox: &str, store: Arc<dyn Store>, registry: Registry, settings: ProcessorSettings) -> Self {
        let in_flight = InFlight::default();
        let common = Common {
            slots: Slots::new(settings.concurrency, in_flight.notify()),
            in_flight,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            cut_off: CancellationToken::new(),
        };
        Self::make(outbox, store, registry, settings, common)
    }

    /// Another outbox of the same instance: slots and shutdown are common to both.
    fn beside(&self, outbox: &str, store: Arc<dyn Store>, registry: Registry, mut settings: ProcessorSettings) -> Self {
        let shared = &self.shared;
        let common = Common {
            slots: shared.slots.shared(),
            in_flight: shared.in_flight.shared(),
            tasks: shared.tasks.clone(),
            stop: shared.stop.clone(),
            cut_off: shared.cut_off.clone(),
        };
        settings.concurrency = shared.settings.concurrency;
        Self::make(outbox, store, registry, settings, common)
    }

    fn make(
        outbox: &str,
        store: Arc<dyn Store>,
        registry: Registry,
        settings: ProcessorSettings,
        common: Common,
    ) -> Self {
        let registry = Arc::new(registry);
        let Common { slots, in_flight, tasks, stop, cut_off } = common;
        let shared = Shared {
            outbox: Arc::from(outbox),
            store,
            lanes: Mutex::new(Lanes::new(Arc::clone(&registry))),
            registry,
            slots,
            cleaning: Cleaning::new(settings.retention),
            settings,
            in_flight: Arc::new(in_flight),
            claim_key: OnceCell::new(),
            left_behind: Mutex::default(),
            tally: Tally::default(),
            tasks,
            stop,
            cut_off,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The name of the outbox that it works on.
    #[must_use]
    pub fn outbox(&self) -> &str {
        &self.shared.outbox
    }

    /// The store that it works on.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Its routes.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// One bounded run: claims what is due within the budget, delivers, settles, reports. Overlapping runs are safe.
    /// Dropping the future stops further claims; deliveries that have begun are still settled.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run(&self, request: RunRequest) -> Result<RunReport, RunError> {
        let _begun = self.shared.tasks.token();
        let run = self.prepare(request)?;
        let hung_up = CancellationToken::new();
        let _caller = hung_up.clone().drop_guard();
        let task = self.shared.tasks.spawn(run.drive(hung_up));
        task.await.unwrap_or_else(|error| Err(RunError::Panicked { reason: error.to_string() }))
    }

    /// Begins a run and returns its first report (`running`) at once; the run is kept in the database from then on.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn start(&self, request: RunRequest) -> Result<RunReport, RunError> {
        let _begun = self.shared.tasks.token();
        let mut run = self.prepare(request)?;
        let report = run.announce().await?;
        self.shared.tasks.spawn(async move {
            // What went wrong stands in the log and in the run's record.
            let _ = run.drive(CancellationToken::new()).await;
        });
        Ok(report)
    }

    fn prepare(&self, request: RunRequest) -> Result<Run, RunError> {
        if self.is_shutting_down() {
            return Err(RunError::ShuttingDown);
        }
        Run::new(Arc::clone(&self.shared), request)
    }

    /// Processes this one event now, if it is due, and waits at most `wait` for the result. Safe to race with runs and
    /// with itself: one delivery. When the wait runs out, or the future is dropped, the handler goes on.
    ///
    /// # Errors
    /// See [`ProcessEventError`].
    pub async fn process_event(&self, id: &EventId, wait: Duration) -> Result<Processed, ProcessEventError> {
        // Whoever has come past the check is waited for by a shutdown.
        let _begun = self.shared.tasks.token();
        if self.is_shutting_down() {
            return Err(ProcessEventError::ShuttingDown);
        }
        by_id::process(&self.shared, id, wait).await
    }

    /// How long finished events of this outbox are kept, if any are ever deleted.
    #[must_use]
    pub fn retention(&self) -> Option<Retention> {
        self.shared.cleaning.retention()
    }

    /// Deletes completed and skipped events past the outbox's retention, in bounded batches and at most 100,000, and says
    /// how many; none where the outbox has no retention. A failure is logged. Runs do the same at their end, at most once
    /// a minute, so only a program that stays without running needs this.
    pub async fn purge(&self) -> u64 {
        cleaning::clean_by_timer(&self.shared).await
    }

    /// Settles a claim that its receiver has accepted, by the receiver's word.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub async fn settle_by_token(&self, id: &EventId, token: &str, outcome: Outcome) -> Result<(), TokenError> {
        let (shared, id, token) = (Arc::clone(&self.shared), id.clone(), token.to_owned());
        // What has been begun is counted too, also when the receiver hangs up.
        let settling = self.shared.tasks.spawn(async move { by_token::settle(&shared, &id, &token, outcome).await });
        settling.await.unwrap_or_else(|error| {
            let reason = "settling panicked".to_owned();
            Err(TokenError::Store(StoreError::Internal { reason, source: Some(Box::new(error)) }))
        })
    }

    /// Moves the end of a claim's lease to `duration` from now and returns the token that settles it from then on.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub async fn extend_by_token(&self, id: &EventId, token: &str, duration: Duration) -> Result<String, TokenError> {
        by_token::extend(&self.shared, id, token, duration).await
    }

    /// Begins to write down what has ended since the last time, for the chart of the last hour. Every run does so at its
    /// end; a resident service does it every few seconds beside them.
    pub fn write_down_minute(&self) {
        tally::write_down(&self.shared);
    }

    /// Refuses new work from now on and stops claiming. Running handlers go on.
    pub fn begin_shutdown(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
    }

    /// Whether [`Processor::begin_shutdown`] was called.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.stop.is_cancelled()
    }

    /// Waits until all runs have ended. After `grace` handlers that still run are cut off and settled as time-outs.
    pub async fn shut_down(&self, grace: Duration) {
        self.begin_shutdown();
        if timeout(grace, self.shared.tasks.wait()).await.is_ok() {
            return;
        }
        tracing::warn!(grace_ms = grace.as_millis(), "the grace time is over: handlers that still run are cut off");
        self.shared.cut_off.cancel();
        if timeout(LAST_SETTLE, self.shared.tasks.wait()).await.is_err() {
            tracing::error!("some attempts could not be settled; their leases will be taken back when they expire");
        }
    }
}
