//! An event: what an application wrote in its own transaction, and what has become of it since.

mod headers;
mod id;
mod new_event;
mod trace;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use headers::{HeaderProblem, MAX_HEADER_BYTES, MAX_HEADERS, check_event_headers, check_route_header};
pub use id::EventId;
pub use new_event::{Due, FieldProblem, MAX_DELAY_MS, NewEvent, check_event_type, check_idempotency_key};
pub use trace::TraceContext;

use crate::timestamp::Timestamp;

/// Characters of an event type.
pub const MAX_TYPE_CHARS: usize = 200;
/// Characters of a subject.
pub const MAX_SUBJECT_CHARS: usize = 255;
/// Characters of an idempotency key.
pub const MAX_IDEMPOTENCY_KEY_CHARS: usize = 255;
/// Attempts that an event may be given.
pub const MAX_ATTEMPTS_LIMIT: i32 = 100;
/// Attempts that an event is given when nobody says otherwise.
pub const DEFAULT_MAX_ATTEMPTS: i32 = 10;

/// Where an event stands. A retry is `Pending` with a later due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Waits for its due time or for a free slot.
    Pending,
    /// Claimed: somebody holds a lease on it.
    Processing,
    /// Delivered. Terminal.
    Completed,
    /// Given up; an operator may requeue or discard it. Terminal until then.
    DeadLetter,
    /// Not delivered on purpose. Terminal.
    Skipped,
    /// An adopted table's label that its description does not name: nobody touches such an event.
    Unknown,
}

impl Status {
    /// Every status that an event can be given, in the order of life.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Processing, Self::Completed, Self::DeadLetter, Self::Skipped];

    /// The word that SQL, JSON and logs use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::DeadLetter => "dead_letter",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the event has reached its end; a dead letter may still be requeued.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Processing | Self::Unknown => false,
            Self::Completed | Self::DeadLetter | Self::Skipped => true,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text names no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown status: valid are pending, processing, completed, dead_letter, skipped")]
pub struct UnknownStatus;

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(UnknownStatus)
    }
}

/// One event as the database shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Given by the caller or made by the database (UUID v7); in an adopted table whatever its application has given.
    pub id: EventId,
    /// What happened; decides the route.
    pub event_type: String,
    /// What the event is about.
    pub subject: Option<String>,
    /// The payload's JSON text, byte for byte; `None` when it was not asked for or exceeds the store's payload limit.
    pub payload: Option<String>,
    /// Sent along to the receiver.
    pub headers: BTreeMap<String, String>,
    /// The caller's key, unique while the event exists.
    pub idempotency_key: Option<String>,
    /// Where the event stands.
    pub status: Status,
    /// Failed attempts since it was enqueued or last requeued.
    pub attempts: i32,
    /// Failed attempts after which it becomes a dead letter.
    pub max_attempts: i32,
    /// How often an operator requeued it.
    pub requeues: i32,
    /// When it is, was or becomes due.
    pub available_at: Timestamp,
    /// When the present claim was made.
    pub locked_at: Option<Timestamp>,
    /// When the present claim's lease ends.
    pub lease_until: Option<Timestamp>,
    /// How often it has been claimed: the fencing token of the latest claim.
    pub claim_no: i64,
    /// Start of the present unbroken chain of deferrals.
    pub deferred_since: Option<Timestamp>,
    /// When its row was written.
    pub created_at: Timestamp,
    /// When it reached a terminal state.
    pub processed_at: Option<Timestamp>,
    /// When it became a dead letter, while it is one.
    pub dead_at: Option<Timestamp>,
    /// Why the latest failure, deferral, skip or discard happened; kept as history after completion.
    pub last_error: Option<String>,
}
