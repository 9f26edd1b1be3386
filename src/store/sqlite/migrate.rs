//! The schema: brought up to date in one immediate transaction, so that of several instances that start at once one
//! migrates and the others wait and find it done. The ledger is the outbox's own, for the file is the application's.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Row as _, SqlSafeStr, SqliteConnection};

use super::SqliteStore;
use super::error::from_sqlx;
use crate::store::StoreError;

const LEDGER: &str = "outbox_migrations";
const READ_LEDGER: &str = "-- outbox: ledger
SELECT version, checksum, success FROM outbox_migrations ORDER BY version";

/// Version, description and text of each migration. A published one is never edited.
const MIGRATIONS: [(i64, &str, &str); 1] = [(1, "outbox", include_str!("../../../migrations/sqlite/0001_outbox.sql"))];

impl SqliteStore {
    pub(super) async fn apply_migrations(&self) -> Result<(), StoreError> {
        self.write(|connection| {
            // `run` asks for a type that borrows for every lifetime; this is what it calls.
            Box::pin(async move { migrator().run_direct(None, connection, false).await.map_err(from_migrate) })
        })
        .await
    }

    /// Answers, can be written to (an immediate transaction can begin) and has exactly this binary's schema.
    pub(super) async fn check_ready(&self) -> Result<(), StoreError> {
        self.write(|connection| Box::pin(compare_ledger(connection))).await
    }
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS.map(|(version, description, sql)| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.into());
    migrator.dangerous_set_table_name(LEDGER);
    migrator
}

async fn compare_ledger(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let rows = sqlx::query(READ_LEDGER).fetch_all(connection).await.map_err(from_sqlx)?;
    let migrator = migrator();
    for row in &rows {
        let version: i64 = row.try_get(0).map_err(from_sqlx)?;
        let checksum: Vec<u8> = row.try_get(1).map_err(from_sqlx)?;
        let Some(known) = migrator.iter().find(|migration| migration.version == version) else {
            return Err(StoreError::SchemaTooNew { version });
        };
        if !row.try_get::<bool, _>(2).map_err(from_sqlx)? {
            return Err(half_applied(version));
        }
        if checksum != *known.checksum {
            return Err(edited(version));
        }
    }
    if rows.len() == MIGRATIONS.len() { Ok(()) } else { Err(StoreError::SchemaOutdated) }
}

fn from_migrate(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => from_sqlx(error),
        MigrateError::VersionMissing(version) => StoreError::SchemaTooNew { version },
        MigrateError::VersionMismatch(version) => edited(version),
        MigrateError::Dirty(version) => half_applied(version),
        other => StoreError::Internal { reason: "the migrations cannot run".to_owned(), source: Some(Box::new(other)) },
    }
}

fn edited(version: i64) -> StoreError {
    let reason = format!("migration {version} was edited after it had been applied; use the outboxd that applied it");
    StoreError::SchemaBroken { reason }
}

fn half_applied(version: i64) -> StoreError {
    let reason = format!("migration {version} was applied by halves; restore the file from its backup");
    StoreError::SchemaBroken { reason }
}
