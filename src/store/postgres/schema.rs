//! The schema: migrations that are part of the binary, and whether the database has exactly them.
//!
//! The ledger is `outbox.schema_migrations`, in the outbox's own schema, so that it cannot collide with the ledger of
//! the application whose database this is. All that is missing is applied in one transaction, so nothing is ever applied
//! by halves. It holds an advisory lock, which lets one instance migrate at a time. Nothing here is left in a session,
//! neither a lock nor a setting nor a prepared statement: behind a pooler in transaction mode the session is everybody's.

use std::time::{Duration, Instant};

use sqlx::migrate::{Migration, MigrationType};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection, Row, SqlSafeStr};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::error::store_error;
use super::parts;
use crate::store::StoreError;

const LEDGER: &str = "outbox.schema_migrations";

/// The advisory lock of whoever migrates: "outboxd" in ASCII.
const LOCK: i64 = 0x6f_7574_626f_7864;

/// Migrating may wait for another instance, or write a large table.
const PATIENCE: Duration = Duration::from_secs(300);

const CREATE_LEDGER: &str = "
CREATE SCHEMA IF NOT EXISTS outbox;
CREATE TABLE IF NOT EXISTS outbox.schema_migrations (
    version bigint PRIMARY KEY,
    description text NOT NULL,
    installed_on timestamptz NOT NULL DEFAULT now(),
    success boolean NOT NULL,
    checksum bytea NOT NULL,
    execution_time bigint NOT NULL
)";

/// Version, description and text of each migration. A published one is never edited.
const MIGRATIONS: [(i64, &str, &str); 3] = [
    (1, "outbox", include_str!("../../../migrations/postgres/0001_outbox.sql")),
    (2, "action", include_str!("../../../migrations/postgres/0002_action.sql")),
    (3, "minute", include_str!("../../../migrations/postgres/0003_minute.sql")),
];

/// One line of the ledger.
struct Applied {
    version: i64,
    checksum: Vec<u8>,
    success: bool,
}

/// Every migration, in order.
fn migrations() -> Vec<Migration> {
    MIGRATIONS
        .map(|(version, description, sql)| {
            let sql = AssertSqlSafe(sql.to_owned()).into_sql_str();
            Migration::new(version, description.into(), MigrationType::Simple, sql, false)
        })
        .into()
}

/// Brings the schema up to date.
pub(super) async fn migrate(pool: &PgPool, tasks: &TaskTracker) -> Result<(), StoreError> {
    let pool = pool.clone();
    let task = tasks.spawn(async move {
        // A connection of its own: migrations outlast a call's deadline and its statement timeout.
        let mut connection = pool.acquire().await.map_err(store_error)?.detach();
        match timeout(PATIENCE, migrate_on(&mut connection)).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Unavailable { reason: "migrating took too long".to_owned(), source: None }),
        }
    });
    task.await.unwrap_or_else(|error| {
        Err(StoreError::Internal { reason: "the migration task panicked".to_owned(), source: Some(Box::new(error)) })
    })
}

/// When this fails its connection is closed, and the server undoes everything.
async fn migrate_on(connection: &mut PgConnection) -> Result<(), StoreError> {
    let mut transaction = connection.begin().await.map_err(store_error)?;
    let lock = format!("SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({LOCK})");
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *transaction).await.map_err(store_error)?;
    sqlx::raw_sql(CREATE_LEDGER).execute(&mut *transaction).await.map_err(store_error)?;
    let applied = ledger(&mut transaction).await.map_err(store_error)?;
    for migration in missing(&applied)? {
        apply(&migration, &mut transaction).await?;
    }
    parts::check(&mut transaction).await.map_err(store_error)??;
    transaction.commit().await.map_err(store_error)
}

async fn apply(migration: &Migration, connection: &mut PgConnection) -> Result<(), StoreError> {
    let began = Instant::now();
    let applied = sqlx::raw_sql(migration.sql.clone()).execute(&mut *connection).await;
    applied.map_err(|error| match store_error(error) {
        unavailable @ StoreError::Unavailable { .. } => unavailable,
        other => broken(format!(
            "migration {} cannot be applied ({other}); if parts of it are there already, drop schema outbox or restore \
             it, then run `outboxd migrate`",
            migration.version
        )),
    })?;
    let note = "INSERT INTO outbox.schema_migrations (version, description, success, checksum, execution_time)
                VALUES ($1, $2, true, $3, $4)";
    let query = sqlx::query(note)
        .persistent(false)
        .bind(migration.version)
        .bind(&*migration.description)
        .bind(&*migration.checksum)
        .bind(i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX));
    query.execute(connection).await.map(|_| ()).map_err(store_error)
}

/// Compares the ledger with this binary's migrations, and what they made with what is there, and sees that the server
/// takes writes.
pub(super) async fn check(connection: &mut PgConnection) -> Result<Result<(), StoreError>, sqlx::Error> {
    let read_only: String =
        sqlx::query_scalar("SHOW transaction_read_only").persistent(false).fetch_one(&mut *connection).await?;
    if read_only == "on" {
        return Ok(Err(StoreError::Unavailable { reason: "the server is read-only".to_owned(), source: None }));
    }
    let applied = ledger(connection).await?;
    match missing(&applied) {
        Ok(missing) if missing.is_empty() => parts::check(connection).await,
        Ok(_) => Ok(Err(StoreError::SchemaOutdated)),
        Err(error) => Ok(Err(error)),
    }
}

async fn ledger(connection: &mut PgConnection) -> Result<Vec<Applied>, sqlx::Error> {
    let query = sqlx::query("SELECT version, checksum, success FROM outbox.schema_migrations ORDER BY version");
    let rows = query.persistent(false).fetch_all(connection).await?;
    let read = |row: &sqlx::postgres::PgRow| {
        Ok(Applied { version: row.try_get(0)?, checksum: row.try_get(1)?, success: row.try_get(2)? })
    };
    rows.iter().map(read).collect()
}

/// This binary's migrations that the ledger does not have; an error when the ledger has others.
fn missing(applied: &[Applied]) -> Result<Vec<Migration>, StoreError> {
    let migrations = migrations();
    for known in applied {
        let version = known.version;
        if !known.success {
            return Err(broken(format!(
                "migration {version} is half applied; undo it by hand, remove its row from {LEDGER}, then run `outboxd \
                 migrate`"
            )));
        }
        match migrations.iter().find(|migration| migration.version == version) {
            None => return Err(StoreError::SchemaTooNew { version }),
            Some(migration) if *migration.checksum != *known.checksum => {
                return Err(broken(format!(
                    "migration {version} was changed after it had been applied; restore {LEDGER} from a backup"
                )));
            }
            Some(_) => {}
        }
    }
    let is_applied = |migration: &Migration| applied.iter().any(|known| known.version == migration.version);
    Ok(migrations.into_iter().filter(|migration| !is_applied(migration)).collect())
}

fn broken(reason: String) -> StoreError {
    StoreError::SchemaBroken { reason }
}
