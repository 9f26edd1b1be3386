//! From the driver's errors to what a caller can do about them. No SQL, no values and no addresses get through.

use sqlx::Error;
use sqlx::error::DatabaseError;

use crate::store::StoreError;

/// Whether the connection must not be used again: its server is gone, stopping, or has become read-only (after a
/// failover the old primary answers, but refuses to write).
pub(super) fn breaks_connection(error: &Error) -> bool {
    match error {
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => true,
        Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            code.starts_with("08") || code.starts_with("57P") || code == "25006" || code == "25P02"
        }
        _ => false,
    }
}

/// Whether the server said that it ends the session, as one that stops or restarts does: nothing was committed.
pub(super) fn ends_session(error: &Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    matches!(code.as_deref(), Some("57P01" | "57P02" | "57P03"))
}

/// Whether the database undid the step because of others, so that it can simply be run again.
pub(super) fn is_conflict(error: &Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    matches!(code.as_deref(), Some("40P01" | "40001"))
}

/// Sorts an error by what the caller can do.
pub(super) fn store_error(error: Error) -> StoreError {
    let unavailable = |reason: &str, error: Error| StoreError::Unavailable {
        reason: reason.to_owned(),
        source: Some(Box::new(error)),
    };
    match &error {
        Error::Database(database) if database.message().contains("startup parameter") => {
            unavailable("a pooler stands before the database: set database.pooler to true", error)
        }
        Error::Database(database) => {
            let code = database.code().unwrap_or_default().into_owned();
            let constraint = database.constraint().map(str::to_owned);
            match (by_code(&code, error), constraint) {
                // Its name is the schema's and tells no value.
                (StoreError::Data { reason, source }, Some(name)) => {
                    StoreError::Data { reason: format!("{reason}, constraint {name:?}"), source }
                }
                (error, _) => error,
            }
        }
        Error::Io(_) => unavailable("the connection failed", error),
        Error::Tls(_) => unavailable("TLS failed", error),
        Error::Protocol(_) => unavailable("the server broke the protocol", error),
        Error::PoolTimedOut => unavailable("no connection could be made, or became free, in time", error),
        Error::PoolClosed | Error::WorkerCrashed => unavailable("the connection pool is closed", error),
        Error::Configuration(_) => unavailable("the connection settings were refused", error),
        _ => StoreError::Internal { reason: "the driver failed".to_owned(), source: Some(Box::new(error)) },
    }
}

fn by_code(code: &str, error: Error) -> StoreError {
    let source = Box::new(error);
    let unavailable =
        |reason: &str, source| StoreError::Unavailable { reason: reason.to_owned(), source: Some(source) };
    match code {
        "25006" => unavailable("the server is read-only", source),
        "3D000" => unavailable("the database does not exist", source),
        "40001" | "40P01" => unavailable("it was in conflict with other work", source),
        "55P03" => StoreError::Locked { source },
        "57014" => unavailable("it did not answer in time", source),
        "42P01" | "42703" | "42804" | "42883" | "3F000" => StoreError::SchemaOutdated,
        "42501" => {
            StoreError::Internal { reason: "the database user lacks a privilege".to_owned(), source: Some(source) }
        }
        _ => match code.get(..2).unwrap_or_default() {
            "08" | "57" => unavailable("the server is not reachable", source),
            "28" => unavailable("the server refused the login", source),
            "53" => unavailable("the server is out of resources", source),
            "58" | "XX" => unavailable("the server has failed", source),
            "22" | "23" => StoreError::Data { reason: format!("SQLSTATE {code}"), source },
            _ => StoreError::Internal { reason: format!("SQLSTATE {code}"), source: Some(source) },
        },
    }
}
