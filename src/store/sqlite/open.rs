//! Opening a database file.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqliteConnection};
use tokio_util::task::TaskTracker;

use super::SqliteStore;
use super::error::from_sqlx;
use super::statements::Statements;
use super::writer::Writer;
use crate::store::{ConnectError, StoreError, StoreOptions};

/// How long a transaction waits for another process that is writing to the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Rows that the connection's thread reads ahead of us: a whole batch, so that it never waits for us in between.
const ROW_BUFFER: usize = 1_024;
/// What the writer's connection sets beside: pages at hand for several batches, a log that holds several of them before it
/// is copied into the file, and in memory what a statement keeps only to take itself back.
const WRITER_PRAGMAS: [(&str, &str); 3] =
    [("cache_size", "-8000"), ("wal_autocheckpoint", "4000"), ("temp_store", "MEMORY")];
/// Switching to the write-ahead log does not wait for a lock, so two instances that start at once may collide.
const OPENING_TRIES: u32 = 50;
const OPENING_PAUSE: Duration = Duration::from_millis(50);
/// Empty for memory and for a temporary database.
const FILE: &str = "-- outbox: file of the database
SELECT file FROM pragma_database_list WHERE name = 'main'";

impl SqliteStore {
    /// Opens the file, or makes it; the directory must be there. The schema is left as it is.
    ///
    /// # Errors
    /// A URL that names no file in an existing directory, or a file that cannot be opened.
    pub async fn open(options: &StoreOptions) -> Result<Self, ConnectError> {
        let connect = connect_options(&options.url)?;
        check_directory(connect.get_filename())?;
        let writer =
            WRITER_PRAGMAS.into_iter().fold(connect.clone(), |options, (name, value)| options.pragma(name, value));
        let mut first = open_first(&writer).await?;
        check_is_file(&mut first).await?;
        let reader = pool(options).connect_lazy_with(connect);
        Ok(Self {
            writer: Arc::new(Writer::new(writer, first)),
            reader,
            statements: Arc::new(Statements::new()),
            tasks: TaskTracker::new(),
            call_deadline: options.call_deadline,
            max_payload_bytes: i64::try_from(options.max_payload_bytes).unwrap_or(i64::MAX),
        })
    }
}

impl SqliteStore {
    /// What the writing connection sets. No part of the interface: the benchmark's bare loop sets the same.
    #[doc(hidden)]
    #[must_use]
    pub fn session_settings() -> Vec<(&'static str, &'static str)> {
        [("journal_mode", "WAL"), ("synchronous", "FULL")].into_iter().chain(WRITER_PRAGMAS).collect()
    }
}

fn connect_options(url: &str) -> Result<SqliteConnectOptions, ConnectError> {
    let options =
        SqliteConnectOptions::from_str(url).map_err(|error| ConnectError::InvalidUrl { reason: error.to_string() })?;
    Ok(options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(false)
        .row_buffer_size(ROW_BUFFER)
        .disable_statement_logging())
}

/// Refuses memory and temporary databases, by whichever of many spellings the URL asks for one: each connection would
/// have a database of its own, and with the process every event would be gone.
async fn check_is_file(connection: &mut SqliteConnection) -> Result<(), ConnectError> {
    let file: Option<String> = sqlx::query_scalar(FILE).fetch_one(connection).await.map_err(from_sqlx)?;
    if file.is_some_and(|file| !file.is_empty()) {
        return Ok(());
    }
    let reason = "an outbox needs a file, and this URL names none: it must last, and all connections share it";
    Err(ConnectError::InvalidUrl { reason: reason.to_owned() })
}

fn check_directory(file: &Path) -> Result<(), ConnectError> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    if directory.is_none_or(Path::is_dir) {
        return Ok(());
    }
    let reason = "the directory of the file does not exist; outboxd makes the file but no directories".to_owned();
    Err(ConnectError::InvalidUrl { reason })
}

fn pool(options: &StoreOptions) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(options.max_connections.max(1))
        .acquire_timeout(options.call_deadline)
        .test_before_acquire(false)
        .max_lifetime(None)
}

async fn open_first(options: &SqliteConnectOptions) -> Result<SqliteConnection, StoreError> {
    for _ in 1..OPENING_TRIES {
        match options.connect().await.map_err(from_sqlx) {
            Err(StoreError::Unavailable { reason, .. }) if reason.contains("locked") => {}
            opened => return opened,
        }
        tokio::time::sleep(OPENING_PAUSE).await;
    }
    options.connect().await.map_err(from_sqlx)
}
