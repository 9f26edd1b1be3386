//! What lists ask for and answer with: events, and dead letters among them.
//!
//! A list is ordered by what never changes, so that an event that is written, settled or requeued between two pages neither
//! repeats nor hides another. A page looks at a bounded number of rows: it may be short, even empty, and still go on.

use crate::event::{Event, EventId, Status};
use crate::timestamp::Timestamp;

/// Which events to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// Only these statuses; all when empty.
    pub statuses: Vec<Status>,
    /// Only these types; all when empty.
    pub types: Vec<String>,
    /// Only this subject.
    pub subject: Option<String>,
    /// Only those written later.
    pub created_after: Option<Timestamp>,
    /// Only those written earlier.
    pub created_before: Option<Timestamp>,
    /// Oldest first instead of newest first.
    pub rising: bool,
    /// Only those behind this place, in the order asked for.
    pub after: Option<EventPosition>,
    /// Events at most, 1–200.
    pub limit: u32,
    /// Whether payloads are wanted.
    pub with_payload: bool,
}

impl EventQuery {
    /// Whether a status fits the query.
    pub(in crate::store) fn wants(&self, status: Status) -> bool {
        self.statuses.is_empty() || self.statuses.contains(&status)
    }

    /// Whether every row fits.
    pub(in crate::store) fn is_unfiltered(&self) -> bool {
        self.statuses.is_empty()
            && self.types.is_empty()
            && self.subject.is_none()
            && self.created_after.is_none()
            && self.created_before.is_none()
    }

    /// Whether only live events are asked for.
    pub(in crate::store) fn is_live(&self) -> bool {
        !self.statuses.is_empty() && self.statuses.iter().all(|status| !status.is_terminal())
    }

    /// Whether only dead letters are asked for.
    pub(in crate::store) fn is_dead(&self) -> bool {
        !self.statuses.is_empty() && self.statuses.iter().all(|status| *status == Status::DeadLetter)
    }
}

/// A place in the list of events. Our own tables are ordered by the id alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPosition {
    /// First part of the order, where an adopted table has an index on it.
    pub created_at: Timestamp,
    /// The order, or its last part.
    pub id: EventId,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventPage {
    /// In the order asked for.
    pub events: Vec<Event>,
    /// Where the next page goes on; `None` only at the end.
    pub next: Option<EventPosition>,
}

/// What dead letters have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadLetterFilter {
    /// Only these types; all when empty.
    pub types: Vec<String>,
    /// Only this subject.
    pub subject: Option<String>,
    /// Only those whose error contains this text, in this case.
    pub error_contains: Option<String>,
    /// Only those that died later.
    pub dead_after: Option<Timestamp>,
    /// Only those that died earlier.
    pub dead_before: Option<Timestamp>,
}

impl DeadLetterFilter {
    /// Whether rows have to be looked at, beyond what an index says.
    pub(in crate::store) fn reads_rows(&self) -> bool {
        self.subject.is_some() || self.error_contains.is_some()
    }
}

/// Ids of dead letters that match, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadLetterIds {
    /// The ids.
    pub ids: Vec<EventId>,
    /// Where to go on; `None` only at the end.
    pub next: Option<DeadLetterPosition>,
}

/// Which dead letters to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadLetterQuery {
    /// Only these types; all when empty.
    pub types: Vec<String>,
    /// Only this subject.
    pub subject: Option<String>,
    /// Only those whose error contains this text, in this case.
    pub error_contains: Option<String>,
    /// Only those behind this place, newest first.
    pub after: Option<DeadLetterPosition>,
    /// Dead letters at most, 1–200.
    pub limit: u32,
    /// Whether payloads are wanted.
    pub with_payload: bool,
}

impl DeadLetterQuery {
    /// What they have in common.
    pub(in crate::store) fn filter(&self) -> DeadLetterFilter {
        DeadLetterFilter {
            types: self.types.clone(),
            subject: self.subject.clone(),
            error_contains: self.error_contains.clone(),
            dead_after: None,
            dead_before: None,
        }
    }
}

/// A place in the list of dead letters, which is ordered by (`dead_at`, id) downwards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLetterPosition {
    /// First part of the order.
    pub dead_at: Timestamp,
    /// Second part of the order.
    pub id: EventId,
}

/// A page of dead letters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeadLetterPage {
    /// Newest first.
    pub events: Vec<Event>,
    /// Where the next page goes on; `None` only at the end.
    pub next: Option<DeadLetterPosition>,
}
