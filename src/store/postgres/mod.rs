//! The store on Postgres: schema `outbox` in the application's own database.
//!
//! Each call is one autocommit statement (enqueueing a batch with keys or ids is one short transaction), run by [`call`] to
//! its end on its own task and under a deadline. The statements stand whole in `sql/`; what they promise is written there.

pub mod adopted;
mod call;
mod claim;
mod enqueue;
mod error;
pub mod inspect;
mod lists;
mod operate;
mod own_transaction;
mod parts;
mod read;
mod rows;
mod schema;
mod settle;
mod statements;
mod stats;

use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

pub use adopted::AdoptedStore;
pub use own_transaction::{complete_in, enqueue_in};

use self::call::{Caller, SESSION_SETTINGS};
use self::enqueue::Groups;
use self::statements::Statements;
use super::table::Table;
use super::{
    Action, Actor, Attempt, BulkChange, Claim, ConnectError, DeadLetterFilter, DeadLetterIds, DeadLetterPage,
    DeadLetterPosition, DeadLetterQuery, EnqueueError, Enqueued, EventPage, EventQuery, InFlightKey, LaneFront, Minute,
    MinuteCounts, Peek, PoolFigures, ReapLane, ReapPage, Reaped, RequeueChange, RunPage, Stats, Store, StoreError,
    StoreOptions, Transition,
};
use crate::event::{Event, EventId, NewEvent};
use crate::lease::{ClaimKey, ClaimedEvent, Lease};
use crate::outcome::Settlement;
use crate::run::{RunRecord, RunReport, Trigger};

/// An outbox in a Postgres database.
pub struct PostgresStore {
    caller: Caller,
    /// Single events that wait to be written together.
    groups: Groups,
    max_payload_bytes: usize,
}

impl PostgresStore {
    /// Reads the URL; connections are made when they are needed.
    ///
    /// # Errors
    /// [`ConnectError::InvalidUrl`].
    pub fn connect(options: &StoreOptions) -> Result<Self, ConnectError> {
        let connect = PgConnectOptions::from_str(&options.url)
            .map_err(|error| ConnectError::InvalidUrl { reason: error.to_string() })?
            .disable_statement_logging();
        // A name in one of the pooler's sessions would meet the same name given by another client.
        let prepared = !options.pooler;
        let statements = Statements::new(&Table::postgres(), options.max_payload_bytes, prepared);
        let caller = Caller::new(options, connect, statements);
        Ok(Self { caller, groups: Groups::default(), max_payload_bytes: options.max_payload_bytes })
    }

    /// The names and texts of the statements as they are sent. No part of the interface: the tests ask the database how
    /// it runs exactly these, on tables of a size that no call through the store could show.
    #[doc(hidden)]
    #[must_use]
    pub fn statements(&self) -> Vec<(&'static str, String)> {
        self.caller.statements().texts()
    }

    /// What each of the store's sessions sets before it runs them, for the same tests.
    #[doc(hidden)]
    #[must_use]
    pub fn session_settings() -> [(&'static str, &'static str); 5] {
        SESSION_SETTINGS
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        schema::migrate(self.caller.pool(), self.caller.tasks()).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.caller.read((), |_, (), connection| Box::pin(schema::check(connection))).await?
    }

    async fn enqueue(&self, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> {
        match events {
            [event] => self.groups.enqueue(&self.caller, event.clone()).await.map(|enqueued| vec![enqueued]),
            events => enqueue::enqueue(&self.caller, events).await,
        }
    }

    async fn survey(&self, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError> {
        claim::survey(&self.caller, after, limit).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> {
        claim::claim(&self.caller, claim).await
    }

    async fn claim_by_id(&self, id: &EventId, lease: Duration) -> Result<Option<ClaimedEvent>, StoreError> {
        let Some(id) = id.uuid() else { return Ok(None) };
        claim::claim_by_id(&self.caller, id, lease).await
    }

    fn parse_id(&self, text: &str) -> Option<EventId> {
        EventId::from_text(text).uuid().map(EventId::Uuid)
    }

    async fn is_due(&self, id: &EventId) -> Result<bool, StoreError> {
        let Some(id) = id.uuid() else { return Ok(false) };
        claim::is_due(&self.caller, id).await
    }

    async fn peek(&self, claim: &Claim) -> Result<Peek, StoreError> {
        claim::peek(&self.caller, claim).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Lease>, StoreError> {
        settle::settle(&self.caller, settlements).await
    }

    async fn extend(&self, lease: &Lease, duration: Duration) -> Result<Option<Lease>, StoreError> {
        settle::extend(&self.caller, lease, duration).await
    }

    async fn reap(&self, lanes: &[ReapLane], page: u32) -> Result<ReapPage, StoreError> {
        settle::reap(&self.caller, lanes, page).await
    }

    async fn reap_by_id(&self, id: &EventId) -> Result<Option<Reaped>, StoreError> {
        let Some(id) = id.uuid() else { return Ok(None) };
        settle::reap_by_id(&self.caller, id).await
    }

    async fn claim_key(&self) -> Result<ClaimKey, StoreError> {
        read::claim_key(&self.caller).await
    }

    async fn event(&self, id: &EventId, with_payload: bool) -> Result<Option<Event>, StoreError> {
        let Some(id) = id.uuid() else { return Ok(None) };
        read::one(&self.caller, id, with_payload).await
    }

    async fn attempts(&self, id: &EventId) -> Result<Vec<Attempt>, StoreError> {
        let Some(id) = id.uuid() else { return Ok(Vec::new()) };
        read::attempts(&self.caller, id).await
    }

    async fn actions(&self, id: &EventId) -> Result<Vec<Action>, StoreError> {
        let Some(id) = id.uuid() else { return Ok(Vec::new()) };
        read::actions(&self.caller, id).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        lists::events(&self.caller, query).await
    }

    async fn in_flight(&self, types: &[String], key: &InFlightKey) -> Result<Vec<EventId>, StoreError> {
        read::in_flight(&self.caller, types, key).await
    }

    async fn cancel(&self, id: &EventId, reason: &str, by: &Actor) -> Result<Transition, StoreError> {
        let Some(id) = id.uuid() else { return Ok(Transition::Absent) };
        operate::cancel(&self.caller, id, reason, by).await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterPage, StoreError> {
        lists::dead_letters(&self.caller, query).await
    }

    async fn find_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        after: Option<&DeadLetterPosition>,
        limit: u32,
    ) -> Result<DeadLetterIds, StoreError> {
        lists::find_dead_letters(&self.caller, filter, after, limit).await
    }

    async fn dead_letters_among(&self, ids: &[EventId]) -> Result<Vec<EventId>, StoreError> {
        lists::dead_letters_among(&self.caller, ids.iter().filter_map(EventId::uuid).collect()).await
    }

    async fn change_dead_letters(
        &self,
        ids: &[EventId],
        change: &BulkChange,
        by: &Actor,
    ) -> Result<Vec<EventId>, StoreError> {
        let ids = ids.iter().filter_map(EventId::uuid).collect();
        operate::change_dead_letters(&self.caller, ids, change, by).await
    }

    async fn requeue(&self, id: &EventId, change: &RequeueChange, by: &Actor) -> Result<Transition, StoreError> {
        let Some(id) = id.uuid() else { return Ok(Transition::Absent) };
        operate::requeue(&self.caller, id, change, by).await
    }

    async fn discard(&self, id: &EventId, reason: &str, by: &Actor) -> Result<Transition, StoreError> {
        let Some(id) = id.uuid() else { return Ok(Transition::Absent) };
        operate::discard(&self.caller, id, reason, by).await
    }

    async fn purge(&self, completed: Duration, skipped: Duration, limit: u32) -> Result<u64, StoreError> {
        operate::purge(&self.caller, completed, skipped, limit).await
    }

    async fn save_run(&self, report: &RunReport, trigger: Trigger, lost_after: Duration) -> Result<(), StoreError> {
        operate::save_run(&self.caller, report, trigger, lost_after).await
    }

    async fn run(&self, run_id: Uuid) -> Result<Option<RunRecord>, StoreError> {
        operate::run(&self.caller, run_id).await
    }

    async fn runs(&self, page: &RunPage) -> Result<Vec<RunRecord>, StoreError> {
        operate::runs(&self.caller, page).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        super::stats::collect(&self.caller).await
    }

    async fn add_minute(&self, outbox: &str, counts: MinuteCounts) -> Result<(), StoreError> {
        stats::add_minute(&self.caller, outbox, counts).await
    }

    async fn minutes(&self, outbox: &str, count: u16) -> Result<Vec<Minute>, StoreError> {
        stats::minutes(&self.caller, outbox, count).await
    }

    fn pool(&self) -> PoolFigures {
        stats::figures(self.caller.pool())
    }

    fn max_payload_bytes(&self) -> usize {
        self.max_payload_bytes
    }

    async fn close(&self) {
        self.caller.close().await;
    }
}
