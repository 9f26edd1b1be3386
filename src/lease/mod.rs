//! A lease: the right to settle one claimed event, proved by its claim number.
//!
//! `claim_no` only ever grows, so neither a clock step nor a requeue can revive an old lease. Every settlement carries
//! the lease and changes nothing when the event has since been claimed by somebody else.

mod token;

use std::collections::BTreeMap;
use std::time::Duration;

pub use token::ClaimKey;

use crate::event::EventId;
use crate::timestamp::Timestamp;

/// How much longer than its handler's timeout a lease lasts, so that a settlement still finds it.
pub const LEASE_MARGIN: Duration = Duration::from_secs(30);

/// How much a fixed lease must exceed the longest handler timeout; below that an event would run twice.
pub const LEAST_LEASE_MARGIN: Duration = Duration::from_secs(1);

/// The right to settle one claim of one event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease {
    /// The claimed event.
    pub event_id: EventId,
    /// Which claim of the event this is: 1, 2, 3 …; where an adopted table has no such column, the instant of the claim in
    /// microseconds.
    pub claim_no: i64,
}

/// An event as its claim returned it: what a handler needs, and the lease to settle it with.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedEvent {
    /// The right to settle it.
    pub lease: Lease,
    /// What happened; decides the route.
    pub event_type: String,
    /// What the event is about.
    pub subject: Option<String>,
    /// The payload's JSON text, byte for byte; `None` when it exceeds the store's payload limit or is not UTF-8.
    pub payload: Option<String>,
    /// Bytes of the payload, also when it was too large to be read.
    pub payload_bytes: i64,
    /// Sent along to the receiver.
    pub headers: BTreeMap<String, String>,
    /// Failed attempts before this one.
    pub attempts: i32,
    /// Failed attempts after which the event becomes a dead letter.
    pub max_attempts: i32,
    /// When its row was written.
    pub created_at: Timestamp,
    /// When it became due.
    pub available_at: Timestamp,
    /// How long it had been due when it was claimed, by the database's clock.
    pub waited: Duration,
    /// How long it had been deferred without a break when it was claimed, by the database's clock.
    pub deferred_for: Option<Duration>,
}

impl ClaimedEvent {
    /// 1 on the first attempt since the event was enqueued or requeued.
    #[must_use]
    pub fn attempt_number(&self) -> i32 {
        self.attempts.saturating_add(1)
    }

    /// A first claim of a small event, for tests.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self {
            lease: Lease { event_id: uuid::Uuid::nil().into(), claim_no: 1 },
            event_type: "example".to_owned(),
            subject: None,
            payload: Some("{}".to_owned()),
            payload_bytes: 2,
            headers: BTreeMap::new(),
            attempts: 0,
            max_attempts: 10,
            created_at: Timestamp::from_micros(0),
            available_at: Timestamp::from_micros(0),
            waited: Duration::ZERO,
            deferred_for: None,
        }
    }
}
