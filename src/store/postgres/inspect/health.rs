//! The health of a database as a queue feels it: what holds back vacuum, what is dead, what the role may not do, whether
//! a pooler stands between. Values only; what they mean is said by whoever asks.
//!
//! Everything is read from the catalogue and the statistics views, a few rows each, under short timeouts, for whoever asks
//! suspects that the database is ill.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::time::timeout;

use super::super::error::store_error;
use super::InspectError;
use crate::store::description::TableName;
use crate::store::{StoreError, StoreOptions};

/// How long the whole may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// No single question may take long, and none may wait for a lock.
const LIMITS: &str =
    "SET LOCAL statement_timeout = 2000; SET LOCAL lock_timeout = 200; SET LOCAL transaction_read_only = on";

/// What the role needs on each table of ours.
const OWN: [(&str, &[&str]); 4] = [
    ("outbox.event", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("outbox.attempt", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("outbox.run", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("outbox.secret", &["SELECT"]),
];

/// What can keep dead rows from being removed, oldest first.
const HOLDERS: &str = "-- outbox: what holds back vacuum
SELECT kind, name, application, state, seconds, transactions
FROM (
    SELECT 'session' AS kind, a.pid::text AS name, coalesce(a.application_name, '') AS application,
           coalesce(a.state, 'unknown') AS state,
           extract(epoch FROM clock_timestamp() - a.xact_start)::bigint AS seconds,
           age(coalesce(a.backend_xmin, a.backend_xid))::bigint AS transactions
    FROM pg_catalog.pg_stat_activity AS a
    WHERE a.pid <> pg_backend_pid() AND coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL
      AND a.xact_start IS NOT NULL AND a.backend_type <> 'autovacuum worker'
      AND (a.datname = current_database() OR a.datname IS NULL)
    UNION ALL
    SELECT 'prepared', p.gid, p.owner::text, 'prepared',
           extract(epoch FROM clock_timestamp() - p.prepared)::bigint, age(p.transaction)::bigint
    FROM pg_catalog.pg_prepared_xacts AS p
    WHERE p.database = current_database()
    UNION ALL
    SELECT 'slot', s.slot_name::text, coalesce(s.plugin::text, ''),
           CASE WHEN s.active THEN 'active' ELSE 'inactive' END,
           NULL, age(coalesce(s.xmin, s.catalog_xmin))::bigint
    FROM pg_catalog.pg_replication_slots AS s
    WHERE coalesce(s.xmin, s.catalog_xmin) IS NOT NULL
) AS holder
ORDER BY transactions DESC NULLS LAST, seconds DESC NULLS LAST
LIMIT 5";

/// `$1` the table, quoted.
const TABLE: &str = "-- outbox: dead rows of a table
SELECT s.n_live_tup::bigint AS live, s.n_dead_tup::bigint AS dead,
       extract(epoch FROM clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum))::bigint AS seconds
FROM pg_catalog.pg_stat_all_tables AS s
WHERE s.relid = to_regclass($1)";

/// `$1` the table, quoted, `$2` privileges. One row for each that the role lacks.
const LACKING: &str = "-- outbox: privileges that are lacking
SELECT wanted.privilege
FROM unnest($2::text[]) AS wanted (privilege)
WHERE to_regclass($1) IS NOT NULL AND NOT has_table_privilege(to_regclass($1)::oid, wanted.privilege)";

/// What was found.
#[derive(Debug, Clone)]
pub struct Health {
    /// As `server_version_num` has it: 150004 is 15.4.
    pub version: i32,
    /// The role that is used.
    pub role: String,
    /// Whether a pooler in transaction mode was seen: two clients had one session of the server.
    pub is_pooled: bool,
    /// What holds back vacuum, oldest first.
    pub holders: Vec<Holder>,
    /// The tables, ours first.
    pub tables: Vec<TableHealth>,
}

/// A transaction, prepared transaction or replication slot whose snapshot keeps dead rows alive.
#[derive(Debug, Clone)]
pub struct Holder {
    /// `session`, `prepared` or `slot`.
    pub kind: String,
    /// Process id, name of the prepared transaction, or name of the slot.
    pub name: String,
    /// What the session calls itself, who prepared it, or the slot's plugin.
    pub application: String,
    /// What it is doing.
    pub state: String,
    /// Since when; slots do not tell.
    pub age: Option<Duration>,
    /// How many transactions have begun since.
    pub transactions: i64,
}

/// A table of an outbox.
#[derive(Debug, Clone)]
pub struct TableHealth {
    /// Its name for people.
    pub name: String,
    /// Rows, as the statistics have it.
    pub live_rows: i64,
    /// Dead rows, as the statistics have it.
    pub dead_rows: i64,
    /// How long ago it was vacuumed, if ever.
    pub vacuumed: Option<Duration>,
    /// What the role may not do with it and would have to.
    pub lacking: Vec<String>,
}

/// Asks for the health of the database and of its outboxes: our own tables, and these, with whether rows of them are to be
/// deleted. Writes nothing.
///
/// # Errors
/// [`InspectError`].
pub async fn health(options: &StoreOptions, adopted: &[(TableName, bool)]) -> Result<Health, InspectError> {
    let late = StoreError::Unavailable { reason: "it did not answer in time".to_owned(), source: None };
    timeout(PATIENCE, asked(options, adopted)).await.map_err(|_| late)?
}

async fn asked(options: &StoreOptions, adopted: &[(TableName, bool)]) -> Result<Health, InspectError> {
    let is_pooled = is_pooled(options).await?;
    let mut connection = connect(options).await?;
    let health = read(&mut connection, adopted, is_pooled).await;
    let _ = connection.close().await;
    Ok(health.map_err(store_error)?)
}

/// As a pooler accepts it: nothing that not every one understands.
async fn connect(options: &StoreOptions) -> Result<PgConnection, InspectError> {
    let connect = PgConnectOptions::from_str(&options.url).map_err(|_| InspectError::InvalidUrl)?;
    let connect = connect.disable_statement_logging().application_name("outboxd doctor").statement_cache_capacity(0);
    Ok(connect.extra_float_digits(None).connect().await.map_err(store_error)?)
}

/// Two clients that are connected at the same time have one server session only where a pooler hands it round.
async fn is_pooled(options: &StoreOptions) -> Result<bool, InspectError> {
    let mut first = connect(options).await?;
    let mut second = connect(options).await?;
    let mut seen = Vec::new();
    for _ in 0..3 {
        for connection in [&mut first, &mut second] {
            let row = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await.map_err(store_error)?;
            seen.push(row.try_get_unchecked::<i32, _>(0).map_err(store_error)?);
        }
    }
    let _ = first.close().await;
    let _ = second.close().await;
    let (firsts, seconds): (Vec<_>, Vec<_>) = seen.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    Ok(firsts.iter().any(|pid| seconds.contains(pid)))
}

/// In one transaction, so that a pooler neither mixes nor keeps anything.
async fn read(
    connection: &mut PgConnection,
    adopted: &[(TableName, bool)],
    is_pooled: bool,
) -> Result<Health, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::raw_sql(LIMITS).execute(&mut *transaction).await?;
    let about = "SELECT current_setting('server_version_num')::integer, current_user::text";
    let row = sqlx::query(about).persistent(false).fetch_one(&mut *transaction).await?;
    let (version, role) = (row.try_get(0)?, row.try_get(1)?);
    let holders = sqlx::query(HOLDERS).persistent(false).fetch_all(&mut *transaction).await?;
    let holders = holders
        .iter()
        .map(|row| {
            Ok(Holder {
                kind: row.try_get(0)?,
                name: row.try_get(1)?,
                application: row.try_get(2)?,
                state: row.try_get(3)?,
                age: row.try_get::<Option<i64>, _>(4)?.map(seconds),
                transactions: row.try_get::<Option<i64>, _>(5)?.unwrap_or(0),
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    let mut tables = Vec::new();
    for (name, privileges) in OWN {
        tables.extend(table(&mut transaction, name, name, privileges).await?);
    }
    for (name, deletes) in adopted {
        let quoted = quoted(name);
        let privileges: &[&str] = if *deletes { &["SELECT", "UPDATE", "DELETE"] } else { &["SELECT", "UPDATE"] };
        tables.extend(table(&mut transaction, &quoted, &quoted, privileges).await?);
    }
    transaction.rollback().await?;
    Ok(Health { version, role, is_pooled, holders, tables })
}

/// One table; `None` when it is not there or not to be seen.
async fn table(
    connection: &mut PgConnection,
    name: &str,
    quoted: &str,
    privileges: &[&str],
) -> Result<Option<TableHealth>, sqlx::Error> {
    let lacking = sqlx::query_scalar(LACKING).bind(quoted).bind(privileges).persistent(false);
    let lacking = lacking.fetch_all(&mut *connection).await?;
    let row = sqlx::query(TABLE).bind(quoted).persistent(false).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(TableHealth {
        name: name.to_owned(),
        live_rows: row.try_get(0)?,
        dead_rows: row.try_get(1)?,
        vacuumed: row.try_get::<Option<i64>, _>(2)?.map(seconds),
        lacking,
    }))
}

fn quoted(name: &TableName) -> String {
    let quote = crate::store::table::quote_identifier;
    match &name.schema {
        Some(schema) => format!("{}.{}", quote(schema), quote(&name.table)),
        None => quote(&name.table),
    }
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}
