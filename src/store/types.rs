//! What goes into and comes out of a [`Store`](super::Store): plain values, the same for both databases.

use std::error::Error;
use std::time::Duration;

use uuid::Uuid;

use crate::event::{Event, EventId, NewEvent, Status};
use crate::timestamp::Timestamp;

/// A place in a lane's order. Only a hint where to begin: what lies before it is found by the next sweep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// First part of the order.
    pub available_at: Timestamp,
    /// Second part of the order.
    pub id: EventId,
}

/// What a survey found at the front of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneFront {
    /// The lane.
    pub event_type: String,
    /// Whether the lane's first due event is claimed, or has no claim number left: from there on expired leases are to be
    /// expected.
    pub claimed_at_front: bool,
    /// The first due event that can be claimed.
    pub claimable: Option<Position>,
    /// When the lane's next event becomes due that is not due yet.
    pub next_due_at: Option<Timestamp>,
}

/// What to claim from one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneClaim {
    /// The lane.
    pub event_type: String,
    /// Events at most.
    pub limit: u32,
    /// Where to begin; at the front when `None`.
    pub from: Option<Position>,
    /// How long the lease lasts, from the claim on.
    pub lease: Duration,
}

/// What to claim: lanes, each named once, and optionally one subject in all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// At least one lane.
    pub lanes: Vec<LaneClaim>,
    /// Only events of this subject. Positions are not used then, and `limit` counts over all lanes together.
    pub subject: Option<SubjectClaim>,
}

/// The subject that a claim is confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectClaim {
    /// The subject.
    pub subject: String,
    /// Events at most, over all lanes.
    pub limit: u32,
}

/// Whether something could be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peek {
    /// Some event is due and pending.
    pub claimable: bool,
    /// When the next event becomes due that is not due yet.
    pub next_due_at: Option<Timestamp>,
}

/// Where to look for expired leases in one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReapLane {
    /// The lane.
    pub event_type: String,
    /// Only events behind this one; from the front when `None`.
    pub after: Option<Position>,
}

/// What a reap did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReapPage {
    /// The leases that were taken back.
    pub reaped: Vec<Reaped>,
    /// For each lane whose page was full and ended in a claimed event, where it ended: expired ones may lie behind that.
    pub unfinished: Vec<ReapLane>,
}

/// An expired lease that was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaped {
    /// Its event.
    pub event_id: EventId,
    /// The event's type.
    pub event_type: String,
    /// `Pending`, or `DeadLetter` at the attempts limit.
    pub status: Status,
}

/// An event that was enqueued, or was already there.
#[derive(Debug, Clone, PartialEq)]
pub struct Enqueued {
    /// The event as it is now, without its payload.
    pub event: Event,
    /// False for a replay.
    pub created: bool,
}

impl Enqueued {
    /// What a request has made, with what the database had to say: all else is as it was asked for.
    pub(super) fn new(request: &NewEvent, id: EventId, created_at: Timestamp, available_at: Timestamp) -> Self {
        let event = Event {
            id,
            event_type: request.event_type.clone(),
            subject: request.subject.clone(),
            payload: None,
            headers: request.kept_headers(),
            idempotency_key: request.idempotency_key.clone(),
            status: Status::Pending,
            attempts: 0,
            max_attempts: request.max_attempts,
            requeues: 0,
            available_at,
            locked_at: None,
            lease_until: None,
            claim_no: 0,
            deferred_since: None,
            created_at,
            processed_at: None,
            dead_at: None,
            last_error: None,
        };
        Self { event, created: true }
    }
}

/// One line of the attempt log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// 1 on the first attempt since the event was enqueued or requeued; repeats after a deferral.
    pub number: i32,
    /// Which claim it was.
    pub claim_no: i64,
    /// When the claim was made.
    pub started_at: Timestamp,
    /// How long the handler took.
    pub duration_ms: i64,
    /// What the handler said, or `expired` for a lease that was taken back.
    pub outcome: String,
    /// The receiver's HTTP status.
    pub status_code: Option<i32>,
    /// What went wrong.
    pub error: Option<String>,
    /// The beginning of the receiver's answer.
    pub response: Option<String>,
}

/// What an in-flight query looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InFlightKey {
    /// Events of this subject.
    Subject(String),
    /// Events whose payload is an object with this key and value, compared as text.
    Payload {
        /// The object's key.
        key: String,
        /// The value's text.
        value: String,
    },
}

/// What became of a guarded change.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// It was applied; the event as it is now, without its payload.
    Applied(Box<Event>),
    /// The event was in another state and stays as it is.
    Refused(Box<Event>),
    /// There is no such event.
    Absent,
}

/// What a requeue sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequeueChange {
    /// When it becomes due, from now.
    pub delay: Duration,
    /// A new attempts limit, 1–100.
    pub max_attempts: Option<i32>,
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPage {
    /// Only those behind this run.
    pub after: Option<(Timestamp, Uuid)>,
    /// Runs at most.
    pub limit: u32,
}

/// Connections to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolFigures {
    /// Those at work.
    pub in_use: u32,
    /// Those that wait for work.
    pub idle: u32,
    /// As many as there may be.
    pub max: u32,
}

/// The store could not do what it was asked to. Nothing was changed, unless the database's answer itself was lost.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is down, read-only, overloaded or does not answer in time. Try again later.
    #[error("the database is unavailable: {reason}")]
    Unavailable {
        /// In which way, without addresses or secrets.
        reason: String,
        /// The driver's error.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Somebody else has locked a row, for longer than a call waits. Try again later.
    #[error("a row is locked by somebody else")]
    Locked {
        /// The driver's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The schema has not been created or is older than this binary: run `outboxd migrate`.
    #[error("the database schema is missing or out of date: run `outboxd migrate`")]
    SchemaOutdated,
    /// A newer binary has migrated this database.
    #[error("the database schema is newer than this binary (it has migration {version}): install a newer outboxd")]
    SchemaTooNew {
        /// The first migration that this binary does not know.
        version: i64,
    },
    /// A migration was applied by halves or edited since it was applied, or something that it made is gone.
    #[error("the database schema is broken: {reason}")]
    SchemaBroken {
        /// What was found and what to do.
        reason: String,
    },
    /// The database refused a value: of these rows, at least one can never be written or read.
    #[error("the database refused the data: {reason}")]
    Data {
        /// The class of the refusal, without values.
        reason: String,
        /// The driver's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// This outbox's table has no place for what was asked.
    #[error("{reason}")]
    Unsupported {
        /// Which outbox, and what its table lacks.
        reason: String,
    },
    /// Anything else; a defect.
    #[error("the database call failed: {reason}")]
    Internal {
        /// What happened, without values.
        reason: String,
        /// The driver's error.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Locked { .. })
    }
}

/// Why events were not enqueued. Nothing of the request was written.
#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    /// The id exists with other content.
    #[error("the id of event {index} exists with other content")]
    IdConflict {
        /// Which event of the request, from 0.
        index: usize,
    },
    /// The idempotency key exists with other content.
    #[error("the idempotency key of event {index} was used for other content")]
    KeyReused {
        /// Which event of the request, from 0.
        index: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
