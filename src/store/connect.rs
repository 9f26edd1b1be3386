//! From a database URL to a [`Store`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::description::Description;
use super::postgres::{self, PostgresStore};
use super::sqlite::{self, SqliteStore};
use super::{Store, StoreError};

/// How to reach a database and how much of it to use.
#[derive(Clone)]
pub struct StoreOptions {
    /// `postgres://…` or `sqlite://…`; may hold a password, so it is never logged.
    pub url: String,
    /// Connections at most.
    pub max_connections: u32,
    /// Whether a pooler in transaction mode (`PgBouncer`) stands between; Postgres only.
    pub pooler: bool,
    /// Payloads above this many bytes are not read.
    pub max_payload_bytes: usize,
    /// How long one call may take before its connection is given up.
    pub call_deadline: Duration,
}

impl fmt::Debug for StoreOptions {
    /// Leaves out the URL, which may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoreOptions")
            .field("max_connections", &self.max_connections)
            .field("pooler", &self.pooler)
            .field("max_payload_bytes", &self.max_payload_bytes)
            .field("call_deadline", &self.call_deadline)
            .finish_non_exhaustive()
    }
}

impl StoreOptions {
    /// The defaults for this URL: 10 connections, payloads of 256 KiB, 10 s a call.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            max_connections: 10,
            pooler: false,
            max_payload_bytes: 256 * 1024,
            call_deadline: Duration::from_secs(10),
        }
    }
}

/// Why a URL leads to no store.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither of the two databases.
    #[error("database_url must begin with postgres://, postgresql:// or sqlite://")]
    UnknownScheme,
    /// The URL cannot be understood. It is not repeated, for it may hold a password.
    #[error("database_url is not valid: {reason}")]
    InvalidUrl {
        /// The driver's words.
        reason: String,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a store for the URL's database. Postgres is dialled on first use; a `SQLite` file is opened, or made, at once.
///
/// # Errors
/// A URL that names no database, or a `SQLite` file that cannot be opened.
pub async fn connect(options: &StoreOptions) -> Result<Arc<dyn Store>, ConnectError> {
    match options.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => Ok(Arc::new(PostgresStore::connect(options)?)),
        Some("sqlite") => Ok(Arc::new(SqliteStore::open(options).await?)),
        Some(_) | None => Err(ConnectError::UnknownScheme),
    }
}

/// Makes a store for a table that was there before. Dials nothing; `home` is the default store on the same database.
///
/// # Errors
/// As [`connect`].
pub async fn connect_adopted(
    options: &StoreOptions,
    description: Description,
    home: Arc<dyn Store>,
) -> Result<Arc<dyn Store>, ConnectError> {
    match options.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => Ok(Arc::new(postgres::AdoptedStore::connect(options, description, home)?)),
        Some("sqlite") => Ok(Arc::new(sqlite::AdoptedStore::connect(options, description, home).await?)),
        Some(_) | None => Err(ConnectError::UnknownScheme),
    }
}
