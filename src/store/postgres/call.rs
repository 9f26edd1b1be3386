//! How every call reaches the database: on its own task, under a deadline, on a connection that is thrown away when in
//! doubt.
//!
//! A step runs as single autocommit statements. The caller's future may be dropped at any moment: the step goes on
//! alone to its end, so no connection returns to the pool in the middle of anything. A step that the database undid
//! because of a deadlock or a serialization failure is run again. Behind a pooler in transaction mode each step is
//! wrapped in its own short transaction, because there two messages of one statement could reach two servers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::error::{breaks_connection, is_conflict, store_error};
use super::statements::Statements;
use crate::store::{StoreError, StoreOptions};

/// How often a step is run that the database keeps undoing because of others.
const TRIES: u32 = 5;

/// How long a call waits for a connection. The pool goes on dialling a server that refuses, so this is also how soon
/// callers hear of a database that is down.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that has rested longer is asked whether it still lives before it is used.
const RESTED: Duration = Duration::from_secs(1);

/// What the statements count on: durable claims, no just-in-time compilation (11 ms a claim on large tables), and no
/// plan that scans the table, not even one that was made while the table was empty. A row that the application has locked
/// is not waited for as long as a whole call may take.
pub(super) const SESSION_SETTINGS: [(&str, &str); 4] =
    [("synchronous_commit", "on"), ("jit", "off"), ("enable_seqscan", "off"), ("lock_timeout", "1000")];

/// A step's future.
pub(super) type StepFuture<'c, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'c>>;

/// A step: its statements, its arguments and the connection to run on.
pub(super) type Step<A, T> = for<'c> fn(&'c Statements, &'c A, &'c mut PgConnection) -> StepFuture<'c, T>;

/// The pool and how to use it.
pub(super) struct Caller {
    pool: PgPool,
    statements: Arc<Statements>,
    tasks: TaskTracker,
    deadline: Duration,
    pooler: bool,
}

impl Caller {
    pub(super) fn new(options: &StoreOptions, connect: PgConnectOptions, statements: Statements) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(ACQUIRE_TIMEOUT.min(options.call_deadline))
            .test_before_acquire(false)
            .before_acquire(|connection, state| {
                Box::pin(async move {
                    if state.idle_for < RESTED {
                        return Ok(true);
                    }
                    Ok(timeout(RESTED, connection.ping()).await.is_ok_and(|answer| answer.is_ok()))
                })
            })
            .connect_lazy_with(session(connect, options));
        Self {
            pool,
            statements: Arc::new(statements),
            tasks: TaskTracker::new(),
            deadline: options.call_deadline,
            pooler: options.pooler,
        }
    }

    /// The statements, to be looked at.
    pub(super) fn statements(&self) -> &Statements {
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
    pub(super) async fn call<A, T>(&self, arguments: A, step: Step<A, T>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (pool, statements) = (self.pool.clone(), Arc::clone(&self.statements));
        let (deadline, pooler) = (self.deadline, self.pooler);
        let task = self.tasks.spawn(async move {
            let mut tries = 1;
            loop {
                match attempt(&pool, &statements, &arguments, step, deadline, pooler).await {
                    Err(Failure::Conflict(_)) if tries < TRIES => tries += 1,
                    Err(Failure::Conflict(error) | Failure::Other(error)) => return Err(store_error(error)),
                    Err(Failure::Late) => return Err(late()),
                    Ok(value) => return Ok(value),
                }
            }
        });
        task.await.unwrap_or_else(|error| {
            Err(StoreError::Internal { reason: "a database task panicked".to_owned(), source: Some(Box::new(error)) })
        })
    }

    /// Waits for the steps that are under way and closes all connections.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.pool.close().await;
    }
}

enum Failure {
    Conflict(sqlx::Error),
    Other(sqlx::Error),
    Late,
}

async fn attempt<A, T>(
    pool: &PgPool,
    statements: &Statements,
    arguments: &A,
    step: Step<A, T>,
    deadline: Duration,
    pooler: bool,
) -> Result<T, Failure> {
    let mut connection = pool.acquire().await.map_err(Failure::Other)?;
    let work = async {
        if pooler {
            in_transaction(statements, arguments, step, deadline, &mut connection).await
        } else {
            step(statements, arguments, &mut connection).await
        }
    };
    match timeout(deadline, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            if breaks_connection(&error) {
                drop(connection.detach());
            }
            Err(if is_conflict(&error) { Failure::Conflict(error) } else { Failure::Other(error) })
        }
        Err(_) => {
            // In an unknown state: the socket is closed, and the server undoes what was under way.
            drop(connection.detach());
            Err(Failure::Late)
        }
    }
}

async fn in_transaction<A, T>(
    statements: &Statements,
    arguments: &A,
    step: Step<A, T>,
    deadline: Duration,
    connection: &mut PgConnection,
) -> Result<T, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    // What a session cannot be told behind a pooler, each transaction is told.
    let settings: String = SESSION_SETTINGS.map(|(name, value)| format!("SET LOCAL {name} = {value};")).concat();
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

fn session(connect: PgConnectOptions, options: &StoreOptions) -> PgConnectOptions {
    if options.pooler {
        return connect.application_name("outboxd").statement_cache_capacity(0).extra_float_digits(None);
    }
    let timeout_ms = options.call_deadline.as_millis().to_string();
    connect
        .application_name("outboxd")
        .options(SESSION_SETTINGS)
        .options([("TimeZone", "UTC"), ("statement_timeout", timeout_ms.as_str())])
}

fn late() -> StoreError {
    StoreError::Unavailable { reason: "it did not answer in time".to_owned(), source: None }
}
