//! An outbox in a table that was there before outboxd, taken over by description alone: no DDL on it, no change in its
//! writers. Runs and the key of claim tokens are kept in our own schema, by the store that this one calls home.
//!
//! The catalogue is read on first use, so that a service starts while its database is down; a description that does not
//! fit its table fails every call and says why. Leases are known by the claim's number where the table has one, else by
//! the claim's instant as it was stored. There are no scan positions: claims begin at the front of each lane.

mod claim;
mod enqueue;
mod fit;
mod lists;
mod literals;
mod names;
mod operate;
mod rows;
mod settle;
mod statements;
mod stats;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

use self::claim::is_of_the_statement;
use self::fit::{Fit, PayloadKind};
use self::statements::Statements;
use super::call::{ADOPTED_SETTINGS, Caller, StepFuture};
use super::inspect::read::{Relation, relation};
use super::stats::figures;
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
    caller: Caller<()>,
    description: Description,
    home: Arc<dyn Store>,
    /// Filled by the first call that could read the catalogue; an altered table empties it again.
    statements: Resolved<Statements>,
    max_payload_bytes: usize,
    prepared: bool,
}

/// A step on an adopted table: its statements, its arguments and the connection to run on.
type Step<A, T> = for<'c> fn(&'c Statements, &'c A, &'c mut sqlx::PgConnection) -> StepFuture<'c, T>;

/// What a step is called with.
struct Arguments<A, T> {
    statements: Arc<Statements>,
    own: A,
    step: Step<A, T>,
}

impl AdoptedStore {
    /// Reads the URL; connections are made, and the catalogue is read, when they are needed.
    ///
    /// # Errors
    /// [`ConnectError::InvalidUrl`].
    pub fn connect(
        options: &StoreOptions,
        description: Description,
        home: Arc<dyn Store>,
    ) -> Result<Self, ConnectError> {
        let connect = PgConnectOptions::from_str(&options.url)
            .map_err(|error| ConnectError::InvalidUrl { reason: error.to_string() })?
            .disable_statement_logging();
        Ok(Self {
            caller: Caller::with_settings(options, connect, (), ADOPTED_SETTINGS),
            description,
            home,
            statements: Resolved::default(),
            max_payload_bytes: options.max_payload_bytes,
            prepared: !options.pooler,
        })
    }

    fn name(&self) -> &str {
        &self.description.name
    }

    fn description(&self) -> &Description {
        &self.description
    }

    /// The statements; the first call reads the catalogue.
    async fn statements(&self) -> Result<Arc<Statements>, StoreError> {
        self.statements.get(self.resolve()).await
    }

    /// Judges an error of a call. One that says that the table is not as it was makes the next call read the catalogue
    /// again, and says what is wrong with it by now.
    async fn judged(&self, error: StoreError) -> StoreError {
        if !matches!(error, StoreError::SchemaOutdated) {
            return error;
        }
        self.statements.forget();
        self.statements().await.err().unwrap_or_else(|| StoreError::Unavailable {
            reason: format!("outbox {:?}: its table has just been altered", self.name()),
            source: None,
        })
    }

    async fn resolve(&self) -> Result<Arc<Statements>, StoreError> {
        let found = self
            .caller
            .read(self.description.table.clone(), |(), table, connection| Box::pin(relation(connection, table)))
            .await?;
        let problem = |what: &str| StoreError::SchemaBroken {
            reason: format!("outbox {:?}: {} {what}", self.name(), self.description.table),
        };
        let facts = match found {
            Relation::Table(facts) => facts,
            Relation::NoTable => return Err(problem("is no table: a view or a foreign table cannot be an outbox")),
            Relation::Absent => return Err(problem("does not exist, or its schema is not in the search path")),
        };
        let fit = Fit::new(&self.description, &facts)?;
        let statements = Arc::new(Statements::new(&fit, self.max_payload_bytes, self.prepared));
        self.try_out(&statements).await?;
        Ok(statements)
    }

    /// Lets the database judge what only it can: the filter, and the name of the time zone.
    async fn try_out(&self, statements: &Arc<Statements>) -> Result<(), StoreError> {
        let refusal = self
            .caller
            .read(Arc::clone(statements), |(), statements, connection| {
                Box::pin(async move {
                    match statements.is_due().bind(None::<String>).fetch_one(connection).await {
                        Ok(_) => Ok(None),
                        Err(sqlx::Error::Database(error)) if is_of_the_statement(error.code().as_deref()) => {
                            Ok(Some(error.message().to_owned()))
                        }
                        Err(error) => Err(error),
                    }
                })
            })
            .await?;
        refusal.map_or(Ok(()), |message| {
            let reason = format!("outbox {:?}: the database refuses its filter or time_zone: {message}", self.name());
            Err(StoreError::SchemaBroken { reason })
        })
    }

    /// Runs a step to its end.
    async fn call<A, T>(&self, own: A, step: Step<A, T>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let arguments = Arguments { statements: self.statements().await?, own, step };
        match self.caller.call(arguments, run_step).await {
            Err(error) => Err(self.judged(error).await),
            done => done,
        }
    }

    /// Runs a step that only reads.
    async fn read<A, T>(&self, own: A, step: Step<A, T>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let arguments = Arguments { statements: self.statements().await?, own, step };
        match self.caller.read(arguments, run_step).await {
            Err(error) => Err(self.judged(error).await),
            done => done,
        }
    }

    /// The id as statements take it; `None` when no row of this table can be called so.
    async fn known_id(&self, id: &EventId) -> Result<Option<String>, StoreError> {
        // In small letters, as the database writes it and as operators' actions are noted.
        let text = id.uuid().map_or_else(|| id.to_string(), |uuid| uuid.to_string());
        Ok(self.statements().await?.id_kind.holds(&text).then_some(text))
    }

    /// When the present lease ends, which the table itself does not say.
    fn with_lease_end(&self, event: Event) -> Event {
        with_lease_end(event, self.description.lease)
    }
}

fn run_step<'c, A, T>(
    _: &'c (),
    arguments: &'c Arguments<A, T>,
    connection: &'c mut sqlx::PgConnection,
) -> StepFuture<'c, T> {
    (arguments.step)(&arguments.statements, &arguments.own, connection)
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
        figures(self.caller.pool())
    }

    async fn abilities(&self) -> Result<Abilities, StoreError> {
        let statements = self.statements().await?;
        Ok(Abilities { discard: statements.has_skipped, set_max_attempts: statements.has_max_attempts })
    }

    async fn limitations(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.statements().await?.limitations.clone())
    }

    fn max_payload_bytes(&self) -> usize {
        self.max_payload_bytes
    }

    async fn close(&self) {
        self.caller.close().await;
    }
}
