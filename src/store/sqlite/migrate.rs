//! The schema: brought up to date in one immediate transaction, so that of several instances that start at once one
//! migrates and the others wait and find it done. The ledger is the outbox's own, for the file is the application's.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Row as _, SqlSafeStr, SqliteConnection};

use super::SqliteStore;
use super::error::from_sqlx;
use crate::store::{StoreError, parts};

const LEDGER: &str = "outbox_migrations";
const READ_LEDGER: &str = "-- outbox: ledger
SELECT version, checksum, success FROM outbox_migrations ORDER BY version";

/// What the migrations make, as [`PRESENT`] and [`KEY`] name it.
const PARTS: [&str; 15] = [
    "table outbox_event",
    "table outbox_attempt",
    "table outbox_run",
    "table outbox_minute",
    "table outbox_secret",
    "table outbox_action",
    KEY_PART,
    "index outbox_event_live",
    "index outbox_event_dead",
    "index outbox_event_dead_newest",
    "index outbox_event_key",
    "index outbox_event_subject",
    "index outbox_event_created",
    "index outbox_run_started",
    "index outbox_action_event",
];
/// The row without which no claim token can be made.
const KEY_PART: &str = "row claim_token of outbox_secret";
const PRESENT: &str = "-- outbox: parts
SELECT type || ' ' || name FROM sqlite_master WHERE type IN ('table', 'index') AND name LIKE 'outbox%'";
const KEY: &str = "-- outbox: key is there
SELECT EXISTS (SELECT 1 FROM outbox_secret WHERE name = 'claim_token')";

/// Version, description and text of each migration. A published one is never edited.
const MIGRATIONS: [(i64, &str, &str); 3] = [
    (1, "outbox", include_str!("../../../migrations/sqlite/0001_outbox.sql")),
    (2, "action", include_str!("../../../migrations/sqlite/0002_action.sql")),
    (3, "minute", include_str!("../../../migrations/sqlite/0003_minute.sql")),
];

impl SqliteStore {
    pub(super) async fn apply_migrations(&self) -> Result<(), StoreError> {
        self.write(|connection| {
            // `run` asks for a type that borrows for every lifetime; this is what it calls.
            Box::pin(async move {
                migrator().run_direct(None, &mut *connection, false).await.map_err(from_migrate)?;
                check_parts(connection).await
            })
        })
        .await
    }

    /// Answers, can be written to (an immediate transaction can begin) and has exactly this binary's schema.
    pub(super) async fn check_ready(&self) -> Result<(), StoreError> {
        self.write(|connection| {
            Box::pin(async move {
                compare_ledger(connection).await?;
                check_parts(connection).await
            })
        })
        .await
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

/// Refuses a schema from which parts are missing.
async fn check_parts(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut present: Vec<String> = sqlx::query_scalar(PRESENT).fetch_all(&mut *connection).await.map_err(from_sqlx)?;
    let has_secrets = present.iter().any(|part| part == "table outbox_secret");
    if has_secrets && sqlx::query_scalar(KEY).fetch_one(connection).await.map_err(from_sqlx)? {
        present.push(KEY_PART.to_owned());
    }
    parts::require(&PARTS, &present, "drop every table outbox_*")
}

fn from_migrate(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) => from_sqlx(error),
        MigrateError::ExecuteMigration(error, version) => not_applicable(version, from_sqlx(error)),
        MigrateError::VersionMissing(version) => StoreError::SchemaTooNew { version },
        MigrateError::VersionMismatch(version) => edited(version),
        MigrateError::Dirty(version) => half_applied(version),
        other => StoreError::Internal { reason: "the migrations cannot run".to_owned(), source: Some(Box::new(other)) },
    }
}

fn not_applicable(version: i64, error: StoreError) -> StoreError {
    match error {
        unavailable @ StoreError::Unavailable { .. } => unavailable,
        other => StoreError::SchemaBroken {
            reason: format!(
                "migration {version} cannot be applied ({other}); if parts of it are there already, restore the file \
                 from its backup or drop every table outbox_*, then run `outboxd migrate`"
            ),
        },
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
