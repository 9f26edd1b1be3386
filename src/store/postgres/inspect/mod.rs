//! Looking at a table that is to be adopted: what its description could be, and whether outboxd would be quick on it.
//!
//! Everything is guessed from the catalogue and a bounded sample, in one read-only transaction. Plans are asked for, never
//! run. What comes out is for a person to read and to correct; nothing else in the program depends on it.

mod advice;
mod columns;
pub(super) mod facts;
mod health;
mod labels;
mod names;
mod notes;
mod plan;
mod proposal;
pub(super) mod read;
mod statements;
mod statuses;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use tokio::time::timeout;

pub use advice::Advice;
pub use columns::Role;
pub use health::{Health, Holder, TableHealth, health};
pub use plan::Verdict;
pub use proposal::{Found, Proposal};
pub use read::SAMPLED_ROWS;
pub use statements::Purpose;
pub use statuses::{Statuses, statuses};

use self::plan::Judge;
use super::call::SESSION_SETTINGS;
use super::error::store_error;
use crate::store::description::TableName;
use crate::store::{StoreError, StoreOptions};
use crate::timestamp::Timestamp;

/// How long a server may take to answer for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// What was found out about a table.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Rows as the planner knows them; negative before the first `ANALYZE`.
    pub estimated_rows: i64,
    /// A description to begin with.
    pub proposal: Proposal,
    /// What to do about indexes.
    pub indexes: Vec<Advice>,
    /// How each statement would run; empty when the proposal has gaps.
    pub statements: Vec<Hot>,
}

impl Inspection {
    /// Whether a whole description could be proposed, without a guess that nothing shows, on which every hot statement is
    /// bounded.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.proposal.missing().is_empty()
            && self.proposal.invented().is_empty()
            && self.statements.iter().all(|statement| statement.verdict.bounded || !statement.purpose.is_hot())
    }
}

/// One statement and how it would run.
#[derive(Debug, Clone, Serialize)]
pub struct Hot {
    /// What it is for.
    pub purpose: Purpose,
    /// What its plan means.
    pub verdict: Verdict,
    /// The plan, one node a line.
    pub plan: Vec<String>,
}

/// Why a table could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// No such table.
    #[error("there is no table {name}{}", suggestion(near))]
    Absent {
        /// As it was looked for.
        name: String,
        /// Tables that could have been meant.
        near: Vec<String>,
    },
    /// A view or a foreign table.
    #[error("{name} is no table: outboxd needs one whose rows it can lock")]
    NoTable {
        /// As it was looked for.
        name: String,
    },
    /// The URL cannot be understood.
    #[error("database_url is not valid for Postgres")]
    InvalidUrl,
    /// The database refused or did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn suggestion(near: &[String]) -> String {
    match near {
        [] => ", and none with a name like it".to_owned(),
        near => format!(
            "; similar are {} (in a shell, put single quotes around a name with double quotes)",
            near.join(", ")
        ),
    }
}

/// Looks at a table. Nothing is written, neither to it nor elsewhere.
///
/// # Errors
/// [`InspectError`].
pub async fn inspect(options: &StoreOptions, name: &TableName) -> Result<Inspection, InspectError> {
    let mut connection = connect(options).await?;
    let inspection = in_transaction(&mut connection, name).await;
    // The transaction goes with the connection, and what it has read is not changed by how it ends.
    let _ = connection.close().await;
    inspection
}

/// The database's clock.
///
/// # Errors
/// [`InspectError`].
pub async fn clock(options: &StoreOptions) -> Result<Timestamp, InspectError> {
    let mut connection = connect(options).await?;
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let micros = sqlx::query_scalar(sql).persistent(false).fetch_one(&mut connection).await.map_err(store_error)?;
    let _ = connection.close().await;
    Ok(Timestamp::from_micros(micros))
}

async fn connect(options: &StoreOptions) -> Result<PgConnection, InspectError> {
    let connect = PgConnectOptions::from_str(&options.url).map_err(|_| InspectError::InvalidUrl)?;
    let mut connect = connect.disable_statement_logging().application_name("outboxd").statement_cache_capacity(0);
    if options.pooler {
        connect = connect.extra_float_digits(None);
    }
    let late = StoreError::Unavailable { reason: "it did not answer in time".to_owned(), source: None };
    let connected = timeout(FIRST_ANSWER, connect.connect()).await.map_err(|_| late)?;
    Ok(connected.map_err(store_error)?)
}

async fn in_transaction(connection: &mut PgConnection, name: &TableName) -> Result<Inspection, InspectError> {
    run(connection, "BEGIN READ ONLY; SET LOCAL statement_timeout = 30000; SET LOCAL lock_timeout = 3000").await?;
    let asked = || match &name.schema {
        Some(schema) => facts::readable_name(schema, &name.table),
        None => facts::readable(&name.table),
    };
    let facts = match read::relation(connection, name).await.map_err(store_error)? {
        read::Relation::Table(facts) => facts,
        read::Relation::NoTable => return Err(InspectError::NoTable { name: asked() }),
        read::Relation::Absent => {
            let near = read::near(connection, name).await.map_err(store_error)?;
            return Err(InspectError::Absent { name: asked(), near });
        }
    };
    let columns = proposal::columns(&facts);
    let sample = read::sample(connection, &facts, &columns).await.map_err(store_error)?;
    let proposal = Proposal::new(&facts, columns, &sample);
    let lock_outlives_claims = proposal.lock_outlives_claims(&sample);
    let judge = Judge { facts: &facts, proposal: &proposal, lock_outlives_claims };
    let statements = explain_all(connection, &judge).await?;
    let indexes = advice::advice(&judge, &statements);
    Ok(Inspection { estimated_rows: facts.estimated_rows, proposal, indexes, statements })
}

async fn explain_all(connection: &mut PgConnection, judge: &Judge<'_>) -> Result<Vec<Hot>, InspectError> {
    let settings: String =
        SESSION_SETTINGS.map(|(name, value)| format!("SET LOCAL {name} = {value};")).into_iter().collect();
    run(connection, &settings).await?;
    let mut found = Vec::new();
    for (purpose, sql) in statements::statements(judge.facts, judge.proposal) {
        let plan = explain(connection, &sql).await?;
        let mut verdict = judge.verdict(purpose, &plan);
        if !verdict.bounded
            && let Some(index) = judge.leading_index(purpose)
        {
            verdict = Verdict::by_index(index);
        }
        let mut lines = Vec::new();
        plan::outline(&plan, 0, &mut lines);
        let hot = Hot { purpose, verdict, plan: lines };
        found.push(hot);
    }
    Ok(found)
}

/// The plan of a statement with parameters, as a session of the store would make it.
async fn explain(connection: &mut PgConnection, sql: &str) -> Result<Value, InspectError> {
    let count = (1..10).filter(|number| sql.contains(&format!("${number}"))).count();
    let arguments = vec!["NULL"; count].join(", ");
    run(connection, &format!("PREPARE outboxd_inspect AS {sql}")).await?;
    let explain = format!("EXPLAIN (FORMAT JSON) EXECUTE outboxd_inspect({arguments})");
    let row = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_one(&mut *connection).await.map_err(store_error)?;
    let text: String = row.try_get_unchecked(0).map_err(store_error)?;
    run(connection, "DEALLOCATE outboxd_inspect").await?;
    let plans: Value = serde_json::from_str(&text).map_err(|error| StoreError::Internal {
        reason: "a plan could not be read".to_owned(),
        source: Some(Box::new(error)),
    })?;
    Ok(plans[0]["Plan"].clone())
}

async fn run(connection: &mut PgConnection, sql: &str) -> Result<(), InspectError> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map_err(store_error)?;
    Ok(())
}
