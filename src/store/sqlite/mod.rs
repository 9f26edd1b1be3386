//! The store in a `SQLite` file: one writer, many readers, the same promises as on Postgres.
//!
//! Every transition is one step of an immediate transaction on the only writing connection, so that statements of one
//! transition cannot interleave with anybody's. Transitions that wait for the connection together share a commit. Another
//! process that writes to the file is waited for up to five seconds. Reads go to their own connections and see the last
//! commit (write-ahead log). Commits are durable (`synchronous = FULL`).
//! `SQLite`'s clock has milliseconds; instants are kept as microseconds all the same, as on Postgres.

mod actions;
mod adopted;
mod bulk;
mod calls;
mod claim;
mod dead_letters;
mod enqueue;
mod error;
mod inspect;
mod lists;
mod migrate;
mod open;
#[cfg(test)]
mod plans;
mod purge;
mod reap;
mod row;
mod runs;
mod settle;
#[cfg(test)]
mod sharing;
mod statements;
mod stats;
mod step;
mod survey;
mod transition;
mod writer;

pub use self::adopted::AdoptedStore;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::SqlitePool;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::statements::Statements;
use self::writer::Writer;
use super::{
    Action, Actor, Attempt, BulkChange, Claim, DeadLetterFilter, DeadLetterIds, DeadLetterPage, DeadLetterPosition,
    DeadLetterQuery, EnqueueError, Enqueued, EventPage, EventQuery, InFlightKey, LaneFront, Minute, MinuteCounts, Peek,
    PoolFigures, ReapLane, ReapPage, Reaped, RequeueChange, RunPage, Stats, Store, StoreError, Transition,
};
use crate::event::{Event, EventId, NewEvent};
use crate::lease::{ClaimKey, ClaimedEvent, Lease};
use crate::outcome::Settlement;
use crate::run::{RunRecord, RunReport, Trigger};

/// An outbox in a `SQLite` file. Clones share everything.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    writer: Arc<Writer>,
    reader: SqlitePool,
    statements: Arc<Statements>,
    /// Calls under way, also those that nobody waits for any more.
    tasks: TaskTracker,
    call_deadline: Duration,
    max_payload_bytes: i64,
}

impl SqliteStore {
    /// The names and texts of the statements as they are run. No part of the interface: the benchmark runs exactly these
    /// in a bare loop beside the engine.
    #[doc(hidden)]
    #[must_use]
    pub fn statements(&self) -> Vec<(&'static str, String)> {
        self.statements.texts()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        self.apply_migrations().await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.check_ready().await
    }

    async fn enqueue(&self, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> {
        self.enqueue_all(events).await
    }

    async fn survey(&self, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError> {
        self.survey_lanes(after, limit).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> {
        self.claim_lanes(claim).await
    }

    async fn claim_by_id(&self, id: &EventId, lease: Duration) -> Result<Option<ClaimedEvent>, StoreError> {
        self.claim_one(id, lease).await
    }

    fn parse_id(&self, text: &str) -> Option<EventId> {
        EventId::from_text(text).uuid().map(EventId::Uuid)
    }

    async fn is_due(&self, id: &EventId) -> Result<bool, StoreError> {
        self.ask_due(id).await
    }

    async fn peek(&self, claim: &Claim) -> Result<Peek, StoreError> {
        self.peek_lanes(claim).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Lease>, StoreError> {
        self.settle_all(settlements).await
    }

    async fn extend(&self, lease: &Lease, duration: Duration) -> Result<Option<Lease>, StoreError> {
        self.extend_lease(lease, duration).await
    }

    async fn reap(&self, lanes: &[ReapLane], page: u32) -> Result<ReapPage, StoreError> {
        self.reap_lanes(lanes, page).await
    }

    async fn reap_by_id(&self, id: &EventId) -> Result<Option<Reaped>, StoreError> {
        self.reap_one(id).await
    }

    async fn claim_key(&self) -> Result<ClaimKey, StoreError> {
        self.read_claim_key().await
    }

    async fn event(&self, id: &EventId, with_payload: bool) -> Result<Option<Event>, StoreError> {
        self.read_event(id, with_payload).await
    }

    async fn attempts(&self, id: &EventId) -> Result<Vec<Attempt>, StoreError> {
        self.read_attempts(id).await
    }

    async fn actions(&self, id: &EventId) -> Result<Vec<Action>, StoreError> {
        self.read_actions(id).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        self.list_events(query).await
    }

    async fn in_flight(&self, types: &[String], key: &InFlightKey) -> Result<Vec<EventId>, StoreError> {
        self.find_in_flight(types, key).await
    }

    async fn cancel(&self, id: &EventId, reason: &str, by: &Actor) -> Result<Transition, StoreError> {
        self.cancel_pending(id, reason, by).await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
        self.list_dead_letters(query).await
    }

    async fn find_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        after: Option<&DeadLetterPosition>,
        limit: u32,
    ) -> Result<DeadLetterIds, StoreError> {
        self.find_dead(filter, after, limit).await
    }

    async fn dead_letters_among(&self, ids: &[EventId]) -> Result<Vec<EventId>, StoreError> {
        self.find_dead_among(ids).await
    }

    async fn change_dead_letters(
        &self,
        ids: &[EventId],
        change: &BulkChange,
        by: &Actor,
    ) -> Result<Vec<EventId>, StoreError> {
        self.change_dead(ids, change, by).await
    }

    async fn requeue(&self, id: &EventId, change: &RequeueChange, by: &Actor) -> Result<Transition, StoreError> {
        self.requeue_dead_letter(id, *change, by).await
    }

    async fn discard(&self, id: &EventId, reason: &str, by: &Actor) -> Result<Transition, StoreError> {
        self.discard_dead_letter(id, reason, by).await
    }

    async fn purge(&self, completed: Duration, skipped: Duration, limit: u32) -> Result<u64, StoreError> {
        self.purge_old(completed, skipped, limit).await
    }

    async fn save_run(&self, report: &RunReport, trigger: Trigger, lost_after: Duration) -> Result<(), StoreError> {
        self.write_run(report, trigger, lost_after).await
    }

    async fn run(&self, run_id: Uuid) -> Result<Option<RunRecord>, StoreError> {
        self.read_run(run_id).await
    }

    async fn runs(&self, page: &RunPage) -> Result<Vec<RunRecord>, StoreError> {
        self.read_runs(*page).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        super::stats::collect(self).await
    }

    async fn add_minute(&self, outbox: &str, counts: MinuteCounts) -> Result<(), StoreError> {
        self.write_minute(outbox, counts).await
    }

    async fn minutes(&self, outbox: &str, count: u16) -> Result<Vec<Minute>, StoreError> {
        self.read_minutes(outbox, count).await
    }

    fn pool(&self) -> PoolFigures {
        self.pool_figures()
    }

    fn sqlite_file(&self) -> Option<SqliteStore> {
        Some(self.clone())
    }

    fn max_payload_bytes(&self) -> usize {
        usize::try_from(self.max_payload_bytes).unwrap_or(usize::MAX)
    }

    async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.reader.close().await;
        self.writer.close().await;
    }
}
