//! Databases to measure on, and events of 300 bytes to put into them.

use outboxd::store::{StoreOptions, connect};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

use crate::postgres::Server;

/// The type of events when there is only one.
pub const EVENT_TYPE: &str = "bench.event";

/// What the throwaway server is told: safe, as servers are in use, and with room for more than a toy.
const SERVER_SETTINGS: [&str; 4] = [
    "ALTER SYSTEM SET fsync = on",
    "ALTER SYSTEM SET full_page_writes = on",
    "ALTER SYSTEM SET max_wal_size = '4GB'",
    "ALTER SYSTEM SET shared_buffers = '1GB'",
];

/// Undoes what makes test servers fast and unsafe.
pub async fn make_durable(server: &mut Server) {
    let mut connection = open(server.url()).await;
    for statement in SERVER_SETTINGS {
        run(&mut connection, statement).await;
    }
    connection.close().await.expect("the connection closes");
    server.stop();
    server.start_again();
}

/// Connects.
pub async fn open(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("Postgres answers")
}

/// Runs statements without arguments.
pub async fn run(connection: &mut PgConnection, sql: impl Into<String>) {
    let sql = sql.into();
    let done = sqlx::raw_sql(AssertSqlSafe(sql.as_str())).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The single value of a query, as text.
pub async fn ask(connection: &mut PgConnection, sql: impl Into<String>) -> String {
    let sql = sql.into();
    let answer = sqlx::query_scalar(AssertSqlSafe(sql.as_str())).fetch_one(connection).await;
    answer.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// In which state events are put into the table.
#[derive(Clone, Copy)]
pub enum State {
    /// Due, as applications would have left them.
    Pending,
    /// Not due for a day.
    Future,
    /// Done, kept as history.
    Completed,
    /// Claimed by somebody who is still at work.
    InFlight,
}

impl State {
    /// Columns and values beside type and payload.
    fn columns(self) -> (&'static str, &'static str) {
        match self {
            Self::Pending => ("", ""),
            Self::Future => (", available_at", ", now() + interval '1 day'"),
            Self::Completed => (", status, claim_no, processed_at", ", 'completed', 1, now()"),
            Self::InFlight => {
                (", status, claim_no, locked_at, lease_until", ", 'processing', 1, now(), now() + interval '1 hour'")
            }
        }
    }
}

/// An outbox in a database of its own.
pub struct Outbox {
    pub url: String,
    name: String,
    admin: String,
}

impl Outbox {
    /// A new database with the schema and nothing else.
    pub async fn create(admin: &str) -> Self {
        let name = format!("bench_{}", Uuid::now_v7().simple());
        let mut connection = open(admin).await;
        run(&mut connection, format!("CREATE DATABASE {name}")).await;
        connection.close().await.expect("the connection closes");
        let (server, _) = admin.rsplit_once('/').expect("a URL with a database");
        let url = format!("{server}/{name}");
        let store = connect(&StoreOptions::new(&url)).await.expect("the database opens");
        store.migrate().await.expect("the schema is made");
        store.close().await;
        Self { url, name, admin: admin.to_owned() }
    }

    /// Makes room on the disk.
    pub async fn discard(self) {
        run(&mut open(&self.admin).await, format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }

    pub async fn open(&self) -> PgConnection {
        open(&self.url).await
    }

    /// Runs statements without arguments.
    pub async fn run(&self, sql: impl Into<String>) {
        run(&mut self.open().await, sql).await;
    }

    /// The single value of a query, as text.
    pub async fn ask(&self, sql: impl Into<String>) -> String {
        ask(&mut self.open().await, sql).await
    }

    /// Commits so many events that are due.
    pub async fn insert(&self, events: u64) {
        self.insert_as(events, 1, State::Pending).await;
    }

    /// Commits so many events, of so many types in turn.
    pub async fn insert_as(&self, events: u64, types: u64, state: State) {
        self.run(insert(events, types, state)).await;
    }

    /// Leaves the table as a quiet hour would, so that no vacuum and no checkpoint meets the measurement.
    pub async fn settle_down(&self) {
        let mut connection = self.open().await;
        run(&mut connection, "VACUUM ANALYZE outbox.event").await;
        run(&mut connection, "CHECKPOINT").await;
    }

    /// Puts exactly so many due events into an empty table.
    pub async fn refill(&self, events: u64) {
        self.run("TRUNCATE outbox.event, outbox.attempt").await;
        self.insert(events).await;
        self.settle_down().await;
    }
}

fn insert(events: u64, types: u64, state: State) -> String {
    let event_type = if types == 1 { format!("'{EVENT_TYPE}'") } else { format!("'{EVENT_TYPE}.' || (n % {types})") };
    let (columns, values) = state.columns();
    format!(
        "INSERT INTO outbox.event (event_type, payload{columns})
         SELECT {event_type},
                ('{{\"n\":\"' || lpad(n::text, 8, '0') || '\",\"text\":\"' || repeat('x', 274) || '\"}}')::json{values}
         FROM generate_series(1, {events}) AS n"
    )
}

/// The same events in a `SQLite` file.
pub async fn fill_sqlite(url: &str, events: u64) {
    let mut connection = SqliteConnection::connect(url).await.expect("the file opens");
    let insert = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1) \
        INSERT INTO outbox_event (event_type, payload) \
        SELECT ?2, printf('{\"n\":\"%08d\",\"text\":\"%.*c\"}', n, 274, 'x') FROM numbers";
    let query = sqlx::query(insert).bind(i64::try_from(events).expect("fits")).bind(EVENT_TYPE);
    query.execute(&mut connection).await.expect("filled");
    connection.close().await.expect("the connection closes");
}
