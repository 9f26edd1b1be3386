//! The yardstick: the store's own claim and settlement, word for word, as fast as a loop can send them.

use std::time::{Duration, Instant};

use outboxd::store::StoreOptions;
use outboxd::store::postgres::PostgresStore;
use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row, SqlSafeStr, SqlStr};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::EVENT_TYPE;

/// Connections that claim and settle side by side.
const LOOPS: usize = 2;
/// One minute, as statements take it.
const LEASE_MICROS: i64 = 60_000_000;

/// A session as the store's own are, and the two statements.
pub struct Session {
    connection: PgConnection,
    claim: SqlStr,
    complete: SqlStr,
    /// How far the lane was claimed, as an instance remembers it.
    position: (OffsetDateTime, Uuid),
    /// Whether it does remember.
    pub keeps_position: bool,
}

/// A connection that is set as the store's own are.
pub async fn connect(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().expect("a URL");
    let options = options.options(PostgresStore::session_settings()).disable_statement_logging();
    PgConnection::connect_with(&options).await.expect("Postgres answers")
}

/// The store's statements, by their names.
pub fn statements(url: &str) -> impl Fn(&str) -> SqlStr {
    let statements = PostgresStore::connect(&StoreOptions::new(url)).expect("a URL").statements();
    move |name| {
        let found = statements.iter().find(|(known, _)| *known == name);
        AssertSqlSafe(found.expect("the store has this statement").1.clone()).into_sql_str()
    }
}

impl Session {
    pub async fn open(url: &str) -> Self {
        let (connection, named) = (connect(url).await, statements(url));
        let position = (OffsetDateTime::UNIX_EPOCH, Uuid::nil());
        Self { connection, claim: named("claim"), complete: named("complete"), position, keeps_position: true }
    }

    /// Claims up to so many events and returns the rows as they came.
    pub async fn claim_rows(&mut self, batch: i32) -> Vec<PgRow> {
        let query = sqlx::query(self.claim.clone())
            .bind([EVENT_TYPE].as_slice())
            .bind([batch].as_slice())
            .bind([self.position.0].as_slice())
            .bind([self.position.1].as_slice())
            .bind([LEASE_MICROS].as_slice());
        let rows = query.fetch_all(&mut self.connection).await.expect("a claim");
        if self.keeps_position {
            let last = rows.iter().map(|row| (row.get("available_at"), row.get("id"))).max();
            self.position = last.unwrap_or(self.position);
        }
        rows
    }

    /// Claims up to so many events.
    pub async fn claim(&mut self, batch: i32) -> Vec<(Uuid, i64)> {
        self.claim_rows(batch).await.iter().map(|row| (row.get("id"), row.get("claim_no"))).collect()
    }

    /// Completes these events and says how many it were.
    pub async fn complete(&mut self, mut leases: Vec<(Uuid, i64)>) -> u64 {
        leases.sort_unstable();
        let (ids, claim_nos): (Vec<Uuid>, Vec<i64>) = leases.into_iter().unzip();
        let query = sqlx::query(self.complete.clone()).bind(ids).bind(claim_nos);
        query.fetch_all(&mut self.connection).await.expect("a settlement").len() as u64
    }

    /// Claims and completes until so many are done or nothing is left.
    async fn drain(&mut self, batch: i32, most: u64) -> u64 {
        let mut done = 0;
        while done < most {
            let leases = self.claim(batch).await;
            if leases.is_empty() {
                break;
            }
            done += self.complete(leases).await;
        }
        done
    }
}

/// Two sessions drain the table; every event must be there.
pub async fn drain(url: &str, batch: i32, events: u64) -> Duration {
    drain_with(url, batch, events, true).await
}

/// The same, with or without scan positions.
pub async fn drain_with(url: &str, batch: i32, events: u64, keeps_position: bool) -> Duration {
    let (done, took) = drain_side_by_side(url, batch, u64::MAX, keeps_position).await;
    assert_eq!(done, events, "the raw loop drains everything");
    took
}

/// Two sessions drain the first so many events of a longer backlog; `events` must be so many times twice the batch.
pub async fn drain_some(url: &str, batch: i32, events: u64) -> Duration {
    let (done, took) = drain_side_by_side(url, batch, events / LOOPS as u64, true).await;
    assert_eq!(done, events, "the raw loop drains as much as it was told");
    took
}

async fn drain_side_by_side(url: &str, batch: i32, most_each: u64, keeps_position: bool) -> (u64, Duration) {
    let mut sessions = Vec::new();
    for _ in 0..LOOPS {
        let mut session = Session::open(url).await;
        session.keeps_position = keeps_position;
        sessions.push(session);
    }
    let began = Instant::now();
    let loops: Vec<_> = sessions
        .into_iter()
        .map(|mut session| tokio::spawn(async move { session.drain(batch, most_each).await }))
        .collect();
    let mut done = 0;
    for task in loops {
        done += task.await.expect("a loop ends");
    }
    (done, began.elapsed())
}
