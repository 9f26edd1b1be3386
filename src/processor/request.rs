//! What the processor is asked, and what it answers.

use std::time::Duration;

use super::UnknownOutbox;
use crate::budget::Budget;
use crate::run::{RunReport, Trigger};
use crate::store::StoreError;

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
    /// There is no such outbox.
    #[error(transparent)]
    UnknownOutbox(#[from] UnknownOutbox),
    /// The instance is stopping.
    #[error("this instance is shutting down")]
    ShuttingDown,
    /// The run's own task failed; a defect. What it had claimed is taken back when its leases expire.
    #[error("the run panicked: {reason}")]
    Panicked {
        /// The panic's text.
        reason: String,
    },
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
    /// Its task failed; a defect.
    #[error("processing the event panicked: {reason}")]
    Panicked {
        /// The panic's text.
        reason: String,
    },
}

/// Why a receiver's claim token did nothing.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Nobody here has made this token, or it belongs to another event.
    #[error("the claim token is not valid for this event")]
    Invalid,
    /// The claim is over: settled, taken back when its lease expired, or claimed by somebody else.
    #[error("the claim is over: its lease was lost or it has been settled")]
    LeaseLost,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
