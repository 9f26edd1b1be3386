//! The schema: migrations that are part of the binary, and whether the database has exactly them.
//!
//! The ledger is `outbox.schema_migrations`, in the outbox's own schema, so that it cannot collide with the ledger of
//! the application whose database this is. An advisory lock lets one instance migrate at a time, and each migration is
//! one transaction, so none is ever applied by halves.

use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, SqlSafeStr};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::error::store_error;
use crate::store::StoreError;

const LEDGER: &str = "outbox.schema_migrations";

/// Migrating may wait for another instance, or write a large table.
const PATIENCE: Duration = Duration::from_secs(300);

fn migrator() -> Migrator {
    let first = Migration::new(
        1,
        "outbox".into(),
        MigrationType::Simple,
        AssertSqlSafe(include_str!("../../../migrations/postgres/0001_outbox.sql").to_owned()).into_sql_str(),
        false,
    );
    let mut migrator = Migrator::with_migrations(vec![first]);
    migrator.dangerous_set_table_name(LEDGER);
    migrator.create_schema("outbox");
    migrator
}

/// Brings the schema up to date.
pub(super) async fn migrate(pool: &PgPool, tasks: &TaskTracker) -> Result<(), StoreError> {
    let pool = pool.clone();
    let task = tasks.spawn(async move {
        // A connection of its own: migrations outlast a call's deadline and its statement timeout.
        let mut connection = pool.acquire().await.map_err(store_error)?.detach();
        sqlx::raw_sql("SET statement_timeout = 0").execute(&mut connection).await.map_err(store_error)?;
        let migrator = migrator();
        match timeout(PATIENCE, migrator.run_direct(None, &mut connection, false)).await {
            Ok(result) => result.map_err(migrate_error),
            Err(_) => Err(StoreError::Unavailable { reason: "migrating took too long".to_owned(), source: None }),
        }
    });
    task.await.unwrap_or_else(|error| {
        Err(StoreError::Internal { reason: "the migration task panicked".to_owned(), source: Some(Box::new(error)) })
    })
}

/// Compares the ledger with this binary's migrations and sees that the server takes writes.
pub(super) async fn check(connection: &mut PgConnection) -> Result<Result<(), StoreError>, sqlx::Error> {
    let read_only: String = sqlx::query_scalar("SHOW transaction_read_only").fetch_one(&mut *connection).await?;
    if read_only == "on" {
        return Ok(Err(StoreError::Unavailable { reason: "the server is read-only".to_owned(), source: None }));
    }
    let applied = connection.list_applied_migrations(LEDGER).await;
    let dirty = match &applied {
        Ok(_) => connection.dirty_version(LEDGER).await,
        Err(_) => Ok(None),
    };
    let (applied, dirty) = match (applied, dirty) {
        (Ok(applied), Ok(dirty)) => (applied, dirty),
        (Err(MigrateError::Execute(error)), _) | (_, Err(MigrateError::Execute(error))) => return Err(error),
        (Err(error), _) | (_, Err(error)) => return Ok(Err(migrate_error(error))),
    };
    if let Some(version) = dirty {
        return Ok(Err(migrate_error(MigrateError::Dirty(version))));
    }
    let migrator = migrator();
    for known in &applied {
        match migrator.iter().find(|migration| migration.version == known.version) {
            None => return Ok(Err(StoreError::SchemaTooNew { version: known.version })),
            Some(migration) if migration.checksum != known.checksum => {
                return Ok(Err(migrate_error(MigrateError::VersionMismatch(known.version))));
            }
            Some(_) => {}
        }
    }
    let is_applied = |version| applied.iter().any(|known| known.version == version);
    let current = migrator.iter().all(|migration| is_applied(migration.version));
    Ok(if current { Ok(()) } else { Err(StoreError::SchemaOutdated) })
}

fn migrate_error(error: MigrateError) -> StoreError {
    let broken = |reason: String| StoreError::SchemaBroken { reason };
    match error {
        MigrateError::Execute(error) => store_error(error),
        MigrateError::ExecuteMigration(error, version) => match store_error(error) {
            unavailable @ StoreError::Unavailable { .. } => unavailable,
            other => broken(format!(
                "migration {version} cannot be applied ({other}); if parts of it are there already, drop schema outbox \
                 or restore it, then run `outboxd migrate`"
            )),
        },
        MigrateError::VersionMissing(version) => StoreError::SchemaTooNew { version },
        MigrateError::VersionMismatch(version) => {
            broken(format!("migration {version} was changed after it had been applied; restore {LEDGER} from a backup"))
        }
        MigrateError::Dirty(version) => broken(format!(
            "migration {version} is half applied; undo it by hand, remove its row from {LEDGER}, then run `outboxd migrate`"
        )),
        other => StoreError::Internal { reason: "migrating failed".to_owned(), source: Some(Box::new(other)) },
    }
}
