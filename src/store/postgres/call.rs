//! How every call reaches the database: on its own task, under a deadline, on a connection that is thrown away when in
//! doubt.
//!
//! A step runs as single autocommit statements. The caller's future may be dropped at any moment: the step goes on
//! alone to its end, so no connection returns to the pool in the middle of anything. A step that the database undid
//! because of a deadlock or a serialization failure is run again. Behind a pooler in transaction mode each step is
//! wrapped in its own short transaction, because there two messages of one statement could reach two servers.
//!
//! A server that restarts leaves dead connections behind. Once one has been met, those that rested meanwhile are asked
//! before they are used. The step that met it is run again, once, if it cannot have written: because the server said
//! that it ended the session, or because the step only reads.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::error::{breaks_connection, ends_session, is_conflict, store_error};
use super::statements::Statements;
use crate::store::{StoreError, StoreOptions};

/// How often a step is run that the database keeps undoing because of others.
const TRIES: u32 = 5;

/// How long a call waits for a connection. The pool goes on dialling a server that refuses, so this is also how soon
/// callers hear of a database that is down.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that has rested longer is asked whether it still lives before it is used.
const RESTED: Duration = Duration::from_secs(1);

/// Names and values that each session sets.
pub(super) type SessionSettings = [(&'static str, &'static str); 5];

/// What the statements count on: durable claims, no just-in-time compilation (11 ms a claim on large tables), no plan that
/// scans the table, not even one that was made while the table was empty, and none that is made anew for each call, for
/// their plans do not depend on what is asked. A row that the application has locked is not waited for as long as a whole
/// call may take.
pub(super) const SESSION_SETTINGS: SessionSettings = [
    ("synchronous_commit", "on"),
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("lock_timeout", "1000"),
];

/// The same where tables are not ours: their indexes are not known, so the planner is free to choose, and chooses anew each
/// time, for what it has chosen once may have been right for an empty table.
pub(super) const ADOPTED_SETTINGS: SessionSettings = [
    ("synchronous_commit", "on"),
    ("jit", "off"),
    ("enable_seqscan", "on"),
    ("plan_cache_mode", "force_custom_plan"),
    ("lock_timeout", "1000"),
];

/// A step's future.
pub(super) type StepFuture<'c, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'c>>;

/// A step: its statements, its arguments and the connection to run on.
pub(super) type Step<A, T, S = Statements> = for<'c> fn(&'c S, &'c A, &'c mut PgConnection) -> StepFuture<'c, T>;

/// When a connection was last found dead.
#[derive(Clone, Default)]
struct LastBreak(Arc<Mutex<Option<Instant>>>);

impl LastBreak {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether a connection that has rested so long may have died in the same way.
    fn is_within(&self, idle_for: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() <= idle_for)
    }
}

/// The pool, the statements and how to use them.
pub(super) struct Caller<S = Statements> {
    pool: PgPool,
    last_break: LastBreak,
    statements: Arc<S>,
    settings: SessionSettings,
    tasks: TaskTracker,
    deadline: Duration,
    pooler: bool,
}

impl<S> Clone for Caller<S> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            last_break: self.last_break.clone(),
            statements: Arc::clone(&self.statements),
            settings: self.settings,
            tasks: self.tasks.clone(),
            deadline: self.deadline,
            pooler: self.pooler,
        }
    }
}

impl Caller {
    pub(super) fn new(options: &StoreOptions, connect: PgConnectOptions, statements: Statements) -> Self {
        Self::with_settings(options, connect, statements, SESSION_SETTINGS)
    }
}

impl<S: Send + Sync + 'static> Caller<S> {
    /// With other settings for its sessions.
    pub(super) fn with_settings(
        options: &StoreOptions,
        connect: PgConnectOptions,
        statements: S,
        settings: SessionSettings,
    ) -> Self {
        let last_break = LastBreak::default();
        let breaks = last_break.clone();
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(ACQUIRE_TIMEOUT.min(options.call_deadline))
            .test_before_acquire(false)
            .before_acquire(move |connection, state| {
                let breaks = breaks.clone();
                Box::pin(async move {
                    if state.idle_for < RESTED && !breaks.is_within(state.idle_for) {
                        return Ok(true);
                    }
                    let lives = timeout(RESTED, connection.ping()).await.is_ok_and(|answer| answer.is_ok());
                    if !lives {
                        breaks.note();
                    }
                    Ok(lives)
                })
            })
            .connect_lazy_with(session(connect, options, settings));
        Self {
            pool,
            last_break,
            statements: Arc::new(statements),
            settings,
            tasks: TaskTracker::new(),
            deadline: options.call_deadline,
            pooler: options.pooler,
        }
    }

    /// The statements, to be looked at.
    pub(super) fn statements(&self) -> &S {
        &self.statements
    }

    /// The pool, for migrations.
    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Who waits for what is under way when the store closes.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Runs a step to its end.
    pub(super) async fn call<A, T>(&self, arguments: A, step: Step<A, T, S>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.on_own_task(arguments, step, false).await
    }

    /// Runs a step to its end that only reads: whatever has become of its connection, it may be run again.
    pub(super) async fn read<A, T>(&self, arguments: A, step: Step<A, T, S>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.on_own_task(arguments, step, true).await
    }

    async fn on_own_task<A, T>(&self, arguments: A, step: Step<A, T, S>, only_reads: bool) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let caller = self.clone();
        let task = self.tasks.spawn(async move { caller.repeat(&arguments, step, only_reads).await });
        task.await.unwrap_or_else(|error| {
            Err(StoreError::Internal { reason: "a database task panicked".to_owned(), source: Some(Box::new(error)) })
        })
    }

    /// Runs a step until it is done or must not be run again.
    async fn repeat<A, T>(&self, arguments: &A, step: Step<A, T, S>, only_reads: bool) -> Result<T, StoreError> {
        let mut tries = 1;
        let mut reconnected = false;
        loop {
            match self.attempt(arguments, step).await {
                Ok(value) => return Ok(value),
                Err(Failure::Conflict(_)) if tries < TRIES => tries += 1,
                Err(Failure::Ended(_)) if !reconnected => reconnected = true,
                Err(Failure::Broken(_)) if only_reads && !reconnected => reconnected = true,
                Err(Failure::Late) => return Err(late()),
                Err(
                    Failure::Conflict(error) | Failure::Ended(error) | Failure::Broken(error) | Failure::Other(error),
                ) => return Err(store_error(error)),
            }
        }
    }

    async fn attempt<A, T>(&self, arguments: &A, step: Step<A, T, S>) -> Result<T, Failure> {
        let mut connection = self.pool.acquire().await.map_err(Failure::unconnected)?;
        let work = async {
            if self.pooler {
                in_transaction(&*self.statements, arguments, step, (self.settings, self.deadline), &mut connection)
                    .await
            } else {
                step(&self.statements, arguments, &mut connection).await
            }
        };
        let failure = match timeout(self.deadline, work).await {
            Ok(Ok(value)) => return Ok(value),
            // A pooler's own word for ending a session may come after the commit.
            Ok(Err(error)) if self.pooler && ends_session(&error) => Failure::Broken(error),
            Ok(Err(error)) => Failure::of(error),
            Err(_) => Failure::Late,
        };
        if failure.breaks_connection() {
            // What is in doubt goes: its socket is closed, and the server undoes what was under way.
            self.last_break.note();
            drop(connection.detach());
        }
        Err(failure)
    }

    /// Waits for the steps that are under way and closes all connections.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.pool.close().await;
    }
}

/// Why a step was not done, by what follows from it.
enum Failure {
    /// The database undid it because of others.
    Conflict(sqlx::Error),
    /// The server ended the session before the step could commit, or there was none.
    Ended(sqlx::Error),
    /// The connection broke; whether the step was done is not known.
    Broken(sqlx::Error),
    /// Not done in time; whether it was done since is not known.
    Late,
    Other(sqlx::Error),
}

impl Failure {
    fn of(error: sqlx::Error) -> Self {
        if is_conflict(&error) {
            Self::Conflict(error)
        } else if ends_session(&error) {
            Self::Ended(error)
        } else if breaks_connection(&error) {
            Self::Broken(error)
        } else {
            Self::Other(error)
        }
    }

    /// No connection was to be had. One that was cut while it was being made, as by a server that stops, has run nothing.
    fn unconnected(error: sqlx::Error) -> Self {
        if breaks_connection(&error) { Self::Ended(error) } else { Self::Other(error) }
    }

    fn breaks_connection(&self) -> bool {
        match self {
            Self::Ended(_) | Self::Broken(_) | Self::Late => true,
            Self::Conflict(_) | Self::Other(_) => false,
        }
    }
}

async fn in_transaction<S, A, T>(
    statements: &S,
    arguments: &A,
    step: Step<A, T, S>,
    (settings, deadline): (SessionSettings, Duration),
    connection: &mut PgConnection,
) -> Result<T, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    // What a session cannot be told behind a pooler, each transaction is told.
    let settings: String = settings.map(|(name, value)| format!("SET LOCAL {name} = {value};")).concat();
    let settings = format!("{settings}SET LOCAL statement_timeout = {}", deadline.as_millis());
    sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut *transaction).await?;
    match step(statements, arguments, &mut transaction).await {
        Ok(value) => transaction.commit().await.map(|()| value),
        Err(error) => {
            // Its own failure tells nothing new: whoever gets the connection next finds out what has become of it.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

fn session(connect: PgConnectOptions, options: &StoreOptions, settings: SessionSettings) -> PgConnectOptions {
    if options.pooler {
        return connect.application_name("outboxd").statement_cache_capacity(0).extra_float_digits(None);
    }
    let timeout_ms = options.call_deadline.as_millis().to_string();
    connect
        .application_name("outboxd")
        .options(settings)
        .options([("TimeZone", "UTC"), ("statement_timeout", timeout_ms.as_str())])
}

fn late() -> StoreError {
    StoreError::Unavailable { reason: "it did not answer in time".to_owned(), source: None }
}
