//! The database edge: one trait, two databases, the same promises.
//!
//! Every transition is one atomic conditional step that states where it comes from: one autocommit statement on
//! Postgres, one immediate transaction on SQLite's single writer. Nothing changed is an answer, not an error. Every
//! comparison with the clock and every new instant is computed by the database. No call holds anything after it has
//! returned, and dropping a call's future neither undoes nor interrupts it: each call runs to its end on its own task,
//! under a deadline. `tests/suite/store` holds the promises written here against both databases.

mod action;
mod adopted;
mod bulk;
mod connect;
pub mod description;
mod listing;
mod minute;
mod parts;
pub mod postgres;
pub mod sqlite;
mod stats;
pub mod table;
mod types;
mod written;

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

pub use action::{Abilities, Action, ActionKind, Actor, UnknownAction};
pub use bulk::{BulkChange, BulkReport, BulkRequest, MAX_BULK, Selection, change_many};
pub use connect::{ConnectError, StoreOptions, connect, connect_adopted};
pub use listing::{
    DeadLetterFilter, DeadLetterIds, DeadLetterPage, DeadLetterPosition, DeadLetterQuery, EventPage, EventPosition,
    EventQuery,
};
pub use minute::{Minute, MinuteCounts};
pub use stats::{LaneStats, MOST_COUNTED, MOST_LANES, Stats};
pub use types::{
    Attempt, Claim, EnqueueError, Enqueued, InFlightKey, LaneClaim, LaneFront, Peek, PoolFigures, Position, ReapLane,
    ReapPage, Reaped, RequeueChange, RunPage, StoreError, SubjectClaim, Transition,
};

use crate::event::{Event, EventId, NewEvent};
use crate::lease::{ClaimKey, ClaimedEvent, Lease};
use crate::outcome::Settlement;
use crate::run::{RunRecord, RunReport, Trigger};

/// One outbox in one database.
#[async_trait]
pub trait Store: Send + Sync {
    /// Brings the schema to this binary's version. Safe when several instances start at once, and when it is current.
    ///
    /// # Errors
    /// [`StoreError::SchemaTooNew`] when a newer binary has been here, [`StoreError::SchemaBroken`] when a migration
    /// was applied by halves or has been edited since, or when something that it made is gone.
    async fn migrate(&self) -> Result<(), StoreError>;

    /// Whether the database answers, can be written to and has exactly this binary's schema.
    ///
    /// # Errors
    /// What is the matter.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Writes all events or none, 1–1,000 of them, already judged by [`NewEvent::problems`]. An event whose key or id is
    /// already there with the same fingerprint is a replay: nothing is written and the event is returned as it is now.
    /// The answers come in the order of the requests, without payloads. A single event may share its statement and its
    /// commit with single events of other callers; whatever becomes of those, it has its own answer.
    ///
    /// # Errors
    /// [`EnqueueError`] names the first event that cannot be written.
    async fn enqueue(&self, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError>;

    /// What stands at the front of each lane with live events, in the order of their types, beginning after the type
    /// `after`: one probe per lane, whatever the backlog. At most `limit` lanes; the next call goes on after the last.
    async fn survey(&self, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError>;

    /// Claims due events of these lanes, per lane in the order (`available_at`, id) and at most the lane's limit,
    /// skipping rows that others have locked: pending → processing, `claim_no` + 1. Each event is returned to exactly
    /// one caller. The order of the answer is not defined.
    async fn claim(&self, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError>;

    /// The id that a caller's text means; `None` when no event of this outbox can be called so.
    fn parse_id(&self, text: &str) -> Option<EventId>;

    /// Claims this one event if it is pending, due and unlocked. Never waits on a row lock.
    async fn claim_by_id(&self, id: &EventId, lease: Duration) -> Result<Option<ClaimedEvent>, StoreError>;

    /// Whether this one event is pending and due, by the database's clock.
    async fn is_due(&self, id: &EventId) -> Result<bool, StoreError>;

    /// Whether these lanes hold claimable events right now, and when the next one becomes due. Changes nothing.
    async fn peek(&self, claim: &Claim) -> Result<Peek, StoreError>;

    /// Writes settlements, at most 1,000, each under its own lease, together with its line in the attempt log. Returns
    /// the leases that were applied; the others were lost and changed nothing.
    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Lease>, StoreError>;

    /// Moves the end of a lease to `duration` from now and returns the lease by which it is known from then on: another
    /// one only in an adopted table that knows leases by their instants. `None` when the lease was lost or has been settled.
    async fn extend(&self, lease: &Lease, duration: Duration) -> Result<Option<Lease>, StoreError>;

    /// Takes back expired leases among the first `page` due events of each lane, beginning after the lane's position:
    /// processing → pending, or → `dead_letter` at the attempts limit, attempts + 1, "claim expired". Locked rows are
    /// left for the next time.
    async fn reap(&self, lanes: &[ReapLane], page: u32) -> Result<ReapPage, StoreError>;

    /// Takes back this one event's lease if it has expired.
    async fn reap_by_id(&self, id: &EventId) -> Result<Option<Reaped>, StoreError>;

    /// The key that seals claim tokens, the same for every instance on this database.
    async fn claim_key(&self) -> Result<ClaimKey, StoreError>;

    /// One event as it is now.
    async fn event(&self, id: &EventId, with_payload: bool) -> Result<Option<Event>, StoreError>;

    /// The event's attempt log in the order of its claims, at most 1,000 lines.
    async fn attempts(&self, id: &EventId) -> Result<Vec<Attempt>, StoreError>;

    /// What operators did to the event, in that order, at most 1,000 lines.
    async fn actions(&self, id: &EventId) -> Result<Vec<Action>, StoreError>;

    /// Events in an order that never changes: newest or oldest first by their ids, which the database makes in the order of
    /// creation; in an adopted table on Postgres by (`created_at`, id) where an index leads there. Looks at a bounded number of rows,
    /// so that a page may be short or empty and still have a `next`.
    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError>;

    /// At most ten pending or processing events of these types (all types when empty) that match. Payloads that
    /// cannot be read as text match nothing; a value matches as the text that Postgres' `->>` would give.
    async fn in_flight(&self, types: &[String], key: &InFlightKey) -> Result<Vec<EventId>, StoreError>;

    /// pending → skipped. This and the changes below leave a line in the event's log of actions, in the same step.
    async fn cancel(&self, id: &EventId, reason: &str, by: &Actor) -> Result<Transition, StoreError>;

    /// Dead letters, newest first. Looks at a bounded number of rows, so that a page may be short or empty and still
    /// have a `next`.
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError>;

    /// Ids of at most `limit` dead letters behind a place, newest first (in an adopted table in the order of their ids);
    /// bounded as [`Store::dead_letters`].
    async fn find_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        after: Option<&DeadLetterPosition>,
        limit: u32,
    ) -> Result<DeadLetterIds, StoreError>;

    /// Which of these events, at most 1,000, are dead letters.
    async fn dead_letters_among(&self, ids: &[EventId]) -> Result<Vec<EventId>, StoreError>;

    /// Changes those of these events, at most 1,000, that are dead letters and that nobody else has locked, in one step,
    /// and says which. [`change_many`] makes whole requests of it.
    async fn change_dead_letters(
        &self,
        ids: &[EventId],
        change: &BulkChange,
        by: &Actor,
    ) -> Result<Vec<EventId>, StoreError>;

    /// `dead_letter` → pending with no attempts spent, requeues + 1.
    async fn requeue(&self, id: &EventId, change: &RequeueChange, by: &Actor) -> Result<Transition, StoreError>;

    /// `dead_letter` → skipped.
    async fn discard(&self, id: &EventId, reason: &str, by: &Actor) -> Result<Transition, StoreError>;

    /// Deletes at most `limit` completed events older than `completed` and skipped ones older than `skipped` together
    /// with their logs, and says how many. Never touches other events.
    async fn purge(&self, completed: Duration, skipped: Duration, limit: u32) -> Result<u64, StoreError>;

    /// Keeps what a run has done so far, under its id: the first call writes the run, a later one replaces its report.
    /// It counts as lost when it has not finished within `lost_after` of the first call. An idle finished run that is
    /// not yet there is kept only when no idle run has been kept within the last minute. Runs older than 7 days go.
    async fn save_run(&self, report: &RunReport, trigger: Trigger, lost_after: Duration) -> Result<(), StoreError>;

    /// One run.
    async fn run(&self, run_id: Uuid) -> Result<Option<RunRecord>, StoreError>;

    /// Runs, newest first.
    async fn runs(&self, page: &RunPage) -> Result<Vec<RunRecord>, StoreError>;

    /// What stands in the lanes. Looks at a bounded number of rows, however large the table is and however many lanes there
    /// are; a count that stops before its end says so. Ages are exact and by the database's clock.
    async fn stats(&self) -> Result<Stats, StoreError>;

    /// Adds to what has ended in the present minute of this outbox, as the database's clock has it. Minutes older than two
    /// days go.
    async fn add_minute(&self, outbox: &str, counts: MinuteCounts) -> Result<(), StoreError>;

    /// The last `count` minutes of this outbox in which something ended, oldest first.
    async fn minutes(&self, outbox: &str, count: u16) -> Result<Vec<Minute>, StoreError>;

    /// How its connections are used at the moment.
    fn pool(&self) -> PoolFigures {
        PoolFigures::default()
    }

    /// What operators can do in this outbox. In our own tables everything.
    async fn abilities(&self) -> Result<Abilities, StoreError> {
        Ok(Abilities { discard: true, set_max_attempts: true })
    }

    /// What this outbox's table does not allow, each in a sentence for its operator. Our own tables allow everything.
    async fn limitations(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// This store once more, when it is kept in a `SQLite` file: a table beside its own is then written through its writer,
    /// the only one.
    #[doc(hidden)]
    fn sqlite_file(&self) -> Option<sqlite::SqliteStore> {
        None
    }

    /// Payloads above this many bytes are not read; a claim then says only how large they are.
    fn max_payload_bytes(&self) -> usize;

    /// Closes every connection. Calls after it fail as unavailable.
    async fn close(&self);
}

/// A duration as the statements add it to an instant; absurd ones are brought to a hundred years.
fn micros(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 24 * 60 * 60 * 1_000_000;
    i64::try_from(duration.as_micros()).map_or(CENTURY, |micros| micros.min(CENTURY))
}
