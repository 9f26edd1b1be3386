//! From the driver's errors to what a caller can do about them. Reasons name a class, never a statement or a value.

use std::sync::Arc;

use sqlx::error::DatabaseError;

use crate::store::StoreError;

// Primary result codes, https://www.sqlite.org/rescode.html.
const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NO_MEMORY: i32 = 7;
const READ_ONLY: i32 = 8;
const INTERRUPTED: i32 = 9;
const IO: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const PROTOCOL: i32 = 15;
const TOO_BIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const NOT_A_DATABASE: i32 = 26;

/// What a driver's error means to the caller.
pub(super) fn from_sqlx(error: sqlx::Error) -> StoreError {
    from_shared(&Arc::new(error))
}

/// What an error means to each of several callers.
pub(super) fn from_shared(error: &Arc<sqlx::Error>) -> StoreError {
    match &**error {
        sqlx::Error::Database(database) => match primary_code(&**database) {
            ERROR if names_missing_schema(database.message()) => StoreError::SchemaOutdated,
            BUSY | LOCKED | PROTOCOL => unavailable("the file is locked by another writer", error),
            READ_ONLY => unavailable("the file is read-only", error),
            FULL => unavailable("the disk is full", error),
            CANNOT_OPEN => unavailable("the file cannot be opened", error),
            IO | NO_MEMORY | INTERRUPTED => unavailable("reading or writing the file failed", error),
            CONSTRAINT => data("a constraint", error),
            MISMATCH => data("a value of the wrong type", error),
            TOO_BIG => data("a value that is too big", error),
            CORRUPT => internal("the file is damaged", error),
            NOT_A_DATABASE => internal("the file is not a SQLite database", error),
            _ => internal("a statement failed", error),
        },
        sqlx::Error::PoolTimedOut => unavailable("no connection became free in time", error),
        sqlx::Error::PoolClosed => unavailable("the store is closed", error),
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => unavailable("the connection was lost", error),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => data("a stored value cannot be read", error),
        _ => internal("the driver failed", error),
    }
}

/// A stored value that is not what its column promises.
pub(super) fn unreadable(column: &'static str) -> StoreError {
    StoreError::Data {
        reason: format!("a stored value cannot be read: {column}"),
        source: format!("column {column}").into(),
    }
}

fn primary_code(error: &dyn DatabaseError) -> i32 {
    error.code().and_then(|code| code.parse::<i32>().ok()).map_or(0, |code| code & 0xff)
}

fn names_missing_schema(message: &str) -> bool {
    ["no such table", "no such column", "no such index", "has no column"].iter().any(|text| message.contains(text))
}

fn unavailable(reason: &str, error: &Arc<sqlx::Error>) -> StoreError {
    StoreError::Unavailable { reason: reason.to_owned(), source: Some(Box::new(Arc::clone(error))) }
}

fn data(reason: &str, error: &Arc<sqlx::Error>) -> StoreError {
    StoreError::Data { reason: reason.to_owned(), source: Box::new(Arc::clone(error)) }
}

fn internal(reason: &str, error: &Arc<sqlx::Error>) -> StoreError {
    StoreError::Internal { reason: reason.to_owned(), source: Some(Box::new(Arc::clone(error))) }
}
