//! An outbox in a table of a `SQLite` file that was there before outboxd, taken over by description alone: no DDL on it,
//! no change in its writers. Runs and the key of claim tokens are kept in our own tables of the same file, by the store
//! that this one calls home; both write through one writer.
//!
//! The catalogue is read on first use; a description that does not fit its table fails every call and says why. Leases are
//! known by the claim's number where the table has one, else by the claim's instant as it was stored. There are no scan
//! positions: claims begin at the front of each lane. A value of another class than its column promises makes a dead
//! letter of its own event where that would be claimed.

mod catalogue;
mod changes;
mod claim;
mod enqueue;
mod fit;
mod instants;
mod limitations;
mod lists;
mod look;
mod names;
mod operate;
#[cfg(test)]
mod plans;
mod rows;
mod settle;
mod statements;
mod stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;
use uuid::Uuid;

use self::catalogue::{Relation, relation};
use self::fit::{Fit, IdKind};
use self::statements::Statements;
use super::SqliteStore;
use super::error::from_sqlx;
use crate::event::{Event, EventId, NewEvent};
use crate::lease::{ClaimKey, ClaimedEvent, Lease};
use crate::outcome::Settlement;
use crate::run::{RunRecord, RunReport, Trigger};
use crate::store::adopted::{Resolved, possible_id, with_lease_end};
use crate::store::description::Description;
use crate::store::{
    Abilities, Action, Actor, Attempt, BulkChange, Claim, ConnectError, DeadLetterFilter, DeadLetterIds,
    DeadLetterPage, DeadLetterPosition, DeadLetterQuery, EnqueueError, Enqueued, EventPage, EventQuery, InFlightKey,
    LaneFront, Minute, MinuteCounts, Peek, PoolFigures, ReapLane, ReapPage, Reaped, RequeueChange, RunPage, Stats,
    Store, StoreError, StoreOptions, Transition,
};

/// An outbox in an adopted table.
pub struct AdoptedStore {
    file: SqliteStore,
    /// Whether the file was opened for this store alone, so that closing it is this one's affair.
    is_own_file: bool,
    closed: AtomicBool,
    description: Description,
    home: Arc<dyn Store>,
    /// Filled by the first call that could read the catalogue; an altered table empties it again.
    statements: Resolved<Statements>,
}

/// What a step gives back.
type StepFuture<'c, T> = BoxFuture<'c, Result<T, sqlx::Error>>;

impl AdoptedStore {
    /// Takes the file from the store that is kept in it. The catalogue is read when it is needed.
    ///
    /// # Errors
    /// A file that cannot be opened, when `home` has none to share.
    pub async fn connect(
        options: &StoreOptions,
        description: Description,
        home: Arc<dyn Store>,
    ) -> Result<Self, ConnectError> {
        let shared = home.sqlite_file();
        let is_own_file = shared.is_none();
        let file = match shared {
            Some(file) => file,
            None => SqliteStore::open(options).await?,
        };
        let (closed, statements) = (AtomicBool::new(false), Resolved::default());
        Ok(Self { file, is_own_file, closed, description, home, statements })
    }

    fn name(&self) -> &str {
        &self.description.name
    }

    fn description(&self) -> &Description {
        &self.description
    }

    fn file(&self) -> &SqliteStore {
        &self.file
    }

    fn max_payload_bytes(&self) -> i64 {
        self.file.max_payload_bytes
    }

    /// The statements; the first call reads the catalogue.
    async fn statements(&self) -> Result<Arc<Statements>, StoreError> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable { reason: "the store is closed".to_owned(), source: None });
        }
        self.statements.get(self.resolve()).await
    }

    async fn resolve(&self) -> Result<Arc<Statements>, StoreError> {
        let table = &self.description.table;
        if let Some(schema) = table.schema.as_deref().filter(|schema| !schema.eq_ignore_ascii_case("main")) {
            return Err(self.broken(&format!(
                "table = {schema:?}.{:?} names another schema: on SQLite valid is a table of the file itself, with or without \"main\"",
                table.table
            )));
        }
        let name = table.table.clone();
        let found = self
            .file
            .read(move |connection| Box::pin(async move { relation(connection, &name).await.map_err(from_sqlx) }))
            .await?;
        let facts = match found {
            Relation::Table(facts) => facts,
            Relation::NoTable => {
                return Err(self.broken(&format!("{table} is no table: a view or a virtual table cannot be an outbox")));
            }
            Relation::Absent => return Err(self.broken(&format!("{table} does not exist"))),
        };
        let statements = Arc::new(Statements::new(&Fit::new(&self.description, &facts)?));
        self.try_out(&statements).await?;
        Ok(statements)
    }

    fn broken(&self, what: &str) -> StoreError {
        StoreError::SchemaBroken { reason: format!("outbox {:?}: {what}", self.name()) }
    }

    /// Runs a step in a transaction of the file's writer.
    async fn call<T, F>(&self, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c Statements, &'c mut SqliteConnection) -> StepFuture<'c, T> + Send + 'static,
    {
        let statements = self.statements().await?;
        let answer = self
            .file
            .write(move |connection| Box::pin(async move { step(&statements, connection).await.map_err(from_sqlx) }));
        self.judged(answer.await).await
    }

    /// Runs a step that only reads.
    async fn read<T, F>(&self, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c Statements, &'c mut SqliteConnection) -> StepFuture<'c, T> + Send + 'static,
    {
        let statements = self.statements().await?;
        let answer = self
            .file
            .read(move |connection| Box::pin(async move { step(&statements, connection).await.map_err(from_sqlx) }));
        self.judged(answer.await).await
    }

    /// Judges an error of a call. One that says that the table is not as it was makes the next call read the catalogue
    /// again, and says what is wrong with it by now.
    async fn judged<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if !matches!(answer, Err(StoreError::SchemaOutdated)) {
            return answer;
        }
        self.statements.forget();
        Err(self.statements().await.err().unwrap_or_else(|| StoreError::Unavailable {
            reason: format!("outbox {:?}: its table has just been altered", self.name()),
            source: None,
        }))
    }

    /// The id as statements take it; `None` when no row of this table can be called so.
    async fn known_id(&self, id: &EventId) -> Result<Option<String>, StoreError> {
        let text = id.to_string();
        let is_possible = match self.statements().await?.id_kind {
            IdKind::Number => text.parse::<i64>().is_ok_and(|number| number.to_string() == text),
            IdKind::Text => !text.contains('\0'),
        };
        Ok(is_possible.then_some(text))
    }

    /// When the present lease ends, which the table itself does not say.
    fn with_lease_end(&self, event: Event) -> Event {
        with_lease_end(event, self.description.lease)
    }

    fn refused(&self, why: &str) -> StoreError {
        StoreError::Unsupported { reason: format!("outbox {:?} cannot do this: {why}", self.name()) }
    }
}

#[async_trait]
impl Store for AdoptedStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        self.home.migrate().await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.home.ready().await?;
        self.statements().await.map(|_| ())
    }

    async fn enqueue(&self, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> {
        self.write_events(events).await
    }

    async fn survey(&self, after: Option<&str>, limit: u32) -> Result<Vec<LaneFront>, StoreError> {
        self.find_lanes(after, limit).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<ClaimedEvent>, StoreError> {
        self.claim_events(claim).await
    }

    fn parse_id(&self, text: &str) -> Option<EventId> {
        possible_id(text)
    }

    async fn claim_by_id(&self, id: &EventId, _: Duration) -> Result<Option<ClaimedEvent>, StoreError> {
        self.claim_one(id).await
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
        Ok(self.home.claim_key().await?.of_outbox(self.name()))
    }

    async fn event(&self, id: &EventId, with_payload: bool) -> Result<Option<Event>, StoreError> {
        self.read_event(id, with_payload).await
    }

    async fn attempts(&self, _: &EventId) -> Result<Vec<Attempt>, StoreError> {
        Ok(Vec::new())
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
        self.home.save_run(report, trigger, lost_after).await
    }

    async fn run(&self, run_id: Uuid) -> Result<Option<RunRecord>, StoreError> {
        self.home.run(run_id).await
    }

    async fn runs(&self, page: &RunPage) -> Result<Vec<RunRecord>, StoreError> {
        self.home.runs(page).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        self.count_lanes().await
    }

    async fn add_minute(&self, outbox: &str, counts: MinuteCounts) -> Result<(), StoreError> {
        self.home.add_minute(outbox, counts).await
    }

    async fn minutes(&self, outbox: &str, count: u16) -> Result<Vec<Minute>, StoreError> {
        self.home.minutes(outbox, count).await
    }

    fn pool(&self) -> PoolFigures {
        self.file.pool_figures()
    }

    async fn abilities(&self) -> Result<Abilities, StoreError> {
        let statements = self.statements().await?;
        Ok(Abilities { discard: statements.has_skipped, set_max_attempts: statements.has_max_attempts })
    }

    async fn limitations(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.statements().await?.limitations.clone())
    }

    fn max_payload_bytes(&self) -> usize {
        Store::max_payload_bytes(&self.file)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        if self.is_own_file {
            self.file.close().await;
        }
    }
}
