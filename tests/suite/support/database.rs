//! A database of a test's own, with an outbox in it, and a way past the store: statements that age rows, so that no test
//! waits for time to pass. Statements are templates of [`Table`], written once for both databases.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use outboxd::store::description::Instants;
use outboxd::store::postgres::PostgresStore;
use outboxd::store::sqlite::SqliteStore;
use outboxd::store::table::Table;
use outboxd::store::{Store, StoreOptions};
use sqlx::{AssertSqlSafe, PgPool, SqlitePool};
use uuid::Uuid;

use super::postgres::fresh_database;

/// The present instant, as the `SQLite` store writes it.
const SQLITE_NOW: &str = "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000)";

/// One test's database.
#[derive(Clone)]
pub struct TestDb {
    pub options: StoreOptions,
    pool: Pool,
    table: Table,
    /// How the table keeps instants, on `SQLite`.
    instants: Instants,
    /// Removes the file with the last handle.
    _directory: Option<Arc<tempfile::TempDir>>,
}

#[derive(Clone)]
enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl TestDb {
    /// A `SQLite` file without a schema.
    #[allow(clippy::unused_async, reason = "its twin for Postgres waits")]
    pub async fn empty_sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = StoreOptions::new(format!("sqlite://{}", directory.path().join("outbox.db").display()));
        let pool = SqlitePool::connect_lazy(&options.url).unwrap();
        let table = Table::sqlite().with("now", SQLITE_NOW);
        Self {
            options,
            pool: Pool::Sqlite(pool),
            table,
            instants: Instants::Microseconds,
            _directory: Some(Arc::new(directory)),
        }
    }

    /// A Postgres database without a schema.
    pub async fn empty_postgres() -> Self {
        let options = StoreOptions::new(fresh_database().await);
        let pool = PgPool::connect_lazy(&options.url).unwrap();
        let table = Table::postgres().with("now", "now()");
        Self { options, pool: Pool::Postgres(pool), table, instants: Instants::Microseconds, _directory: None }
    }

    /// The same database, whose templates name the parts of another table.
    pub fn naming(self, table: Table) -> Self {
        Self { table, ..self }
    }

    /// The same where instants are kept in another way.
    pub fn keeping(self, instants: Instants) -> Self {
        Self { instants, ..self }
    }

    /// Another store on this database, as another instance would have.
    pub async fn store(&self) -> Arc<dyn Store> {
        match self.pool {
            Pool::Sqlite(_) => Arc::new(SqliteStore::open(&self.options).await.unwrap()),
            Pool::Postgres(_) => Arc::new(PostgresStore::connect(&self.options).unwrap()),
        }
    }

    /// A store with its schema.
    pub async fn migrated(&self) -> Arc<dyn Store> {
        let store = self.store().await;
        store.migrate().await.unwrap();
        store
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self.pool, Pool::Sqlite(_))
    }

    /// Runs a statement that may be refused; says how many rows it touched.
    pub async fn try_sql(&self, template: &str) -> Result<u64, sqlx::Error> {
        let sql = AssertSqlSafe(self.table.render(template));
        match &self.pool {
            Pool::Sqlite(pool) => sqlx::raw_sql(sql).execute(pool).await.map(|done| done.rows_affected()),
            Pool::Postgres(pool) => sqlx::raw_sql(sql).execute(pool).await.map(|done| done.rows_affected()),
        }
    }

    /// Runs a statement.
    pub async fn sql(&self, template: &str) -> u64 {
        self.try_sql(template).await.unwrap()
    }

    /// Asks for one number.
    pub async fn count(&self, template: &str) -> i64 {
        let sql = AssertSqlSafe(self.table.render(template));
        match &self.pool {
            Pool::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
            Pool::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
        }
    }

    /// Ends the event's lease a second ago.
    pub async fn expire_lease(&self, id: Uuid) {
        let ago = self.ago(Duration::from_secs(1));
        assert_eq!(self.sql(&format!("UPDATE {{events}} SET {{lease_until}} = {ago} WHERE {{id}} = '{id}'")).await, 1);
    }

    /// Makes the event due a second ago.
    pub async fn make_due(&self, id: impl Display) {
        let ago = self.ago(Duration::from_secs(1));
        assert_eq!(self.sql(&format!("UPDATE {{events}} SET {{available_at}} = {ago} WHERE {{id}} = '{id}'")).await, 1);
    }

    /// Moves the event's instants of creation and end back.
    pub async fn age(&self, id: impl Display, by: Duration) {
        let [created_at, processed_at] = ["{created_at}", "{processed_at}"].map(|column| self.before(column, by));
        let sql = format!(
            "UPDATE {{events}} SET {{created_at}} = {created_at}, {{processed_at}} = {processed_at} WHERE {{id}} = '{id}'"
        );
        assert_eq!(self.sql(&sql).await, 1);
    }

    /// An expression for an instant in the past.
    pub fn ago(&self, by: Duration) -> String {
        self.before("{now}", by)
    }

    /// An expression for an earlier instant.
    fn before(&self, instant: &str, by: Duration) -> String {
        let seconds = by.as_secs();
        match (&self.pool, self.instants) {
            (Pool::Postgres(_), _) | (Pool::Sqlite(_), Instants::Microseconds) => {
                format!("({instant} - {})", self.interval(by))
            }
            (Pool::Sqlite(_), Instants::Milliseconds) => format!("({instant} - {})", by.as_millis()),
            (Pool::Sqlite(_), Instants::Seconds) => format!("({instant} - {seconds})"),
            (Pool::Sqlite(_), Instants::Text) => {
                format!("strftime('%Y-%m-%d %H:%M:%f', {instant}, '-{seconds} seconds')")
            }
            (Pool::Sqlite(_), Instants::Iso) => {
                format!("strftime('%Y-%m-%dT%H:%M:%fZ', {instant}, '-{seconds} seconds')")
            }
        }
    }

    /// An expression for a duration.
    pub fn interval(&self, by: Duration) -> String {
        match self.pool {
            Pool::Sqlite(_) => by.as_micros().to_string(),
            Pool::Postgres(_) => format!("interval '{} microseconds'", by.as_micros()),
        }
    }

    /// Sessions that sit in an open transaction; a `SQLite` file shows them by its lock alone.
    pub async fn idle_in_transaction(&self) -> i64 {
        match self.pool {
            Pool::Sqlite(_) => 0,
            Pool::Postgres(_) => {
                self.count(
                    "SELECT count(*) FROM pg_stat_activity \
                     WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
                )
                .await
            }
        }
    }
}
