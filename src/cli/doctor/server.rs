//! The Postgres server: its version, what the role may do, a pooler in the way, what holds back vacuum, what is dead.

use std::time::Duration;

use humantime::format_duration;

use super::findings::Findings;
use crate::config::AdoptedSettings;
use crate::store::StoreOptions;
use crate::store::postgres::inspect::{self, Health, Holder, TableHealth};

/// The oldest version that is supported, as `server_version_num`.
const OLDEST: i32 = 130_000;
/// A transaction that is so many times older than one may be makes a queue slow.
const FAR_TOO_OLD: u32 = 12;
/// A slot that holds back so many transactions has been forgotten.
const FORGOTTEN: i64 = 1_000_000;
/// Dead rows that are worth a word when there are more of them than live ones.
const MANY_DEAD: i64 = 50_000;

/// Says what is to be said of it. A server that does not tell is a warning: the rest is judged all the same.
pub(super) async fn server(
    options: &StoreOptions,
    adopted: &[AdoptedSettings],
    transaction_age: Duration,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    if !options.url.starts_with("postgres") {
        return Ok(());
    }
    let tables: Vec<_> =
        adopted.iter().map(|outbox| (outbox.description.table.clone(), outbox.retention.is_some())).collect();
    match inspect::health(options, &tables).await {
        Ok(health) => {
            version(health.version, findings)?;
            pooler(options.pooler, health.is_pooled, findings)?;
            privileges(&health, findings)?;
            vacuum(&health.holders, transaction_age, findings)?;
            health.tables.iter().try_for_each(|table| dead_rows(table, findings))
        }
        Err(error) => findings.warning(
            &format!("the server's health cannot be read: {error}"),
            "run doctor again when the database is less busy",
        ),
    }
}

fn version(version: i32, findings: &mut Findings) -> anyhow::Result<()> {
    let (major, minor) = (version / 10_000, version % 10_000);
    if version < OLDEST {
        findings.problem(
            &format!("Postgres {major}.{minor} is not supported"),
            &format!("upgrade the server to Postgres {} or later", OLDEST / 10_000),
        )
    } else {
        findings.ok(&format!("Postgres {major}.{minor}"))
    }
}

fn pooler(is_configured: bool, is_pooled: bool, findings: &mut Findings) -> anyhow::Result<()> {
    match (is_configured, is_pooled) {
        (false, false) => findings.ok("no pooler in transaction mode stands before the database"),
        (true, true) => findings.ok("a pooler in transaction mode stands before the database, as the settings say"),
        (false, true) => findings.problem(
            "a pooler in transaction mode stands before the database and database.pooler is false: calls fail or meet \
             another session's settings",
            "set database.pooler = true, or give the database's own address",
        ),
        (true, false) => findings.warning(
            "database.pooler is true and no pooler in transaction mode was seen: each call costs more than it needs to",
            "set database.pooler = false if the database is reached directly",
        ),
    }
}

fn privileges(Health { role, tables, .. }: &Health, findings: &mut Findings) -> anyhow::Result<()> {
    let mut are_missing = false;
    for table in tables.iter().filter(|table| !table.lacking.is_empty()) {
        are_missing = true;
        let (name, lacking) = (&table.name, table.lacking.join(", "));
        findings.problem(
            &format!("role {role:?} lacks {lacking} on {name}"),
            &format!("GRANT {lacking} ON {name} TO \"{}\"", role.replace('"', "\"\"")),
        )?;
    }
    if are_missing { Ok(()) } else { findings.ok(&format!("role {role:?} may do what the service does")) }
}

/// The first one counts: when it is gone, the next is looked at.
fn vacuum(holders: &[Holder], transaction_age: Duration, findings: &mut Findings) -> anyhow::Result<()> {
    let is_old = |holder: &&Holder| match holder.age {
        Some(age) => age >= transaction_age,
        None => holder.transactions >= FORGOTTEN,
    };
    let Some(holder) = holders.iter().find(is_old) else { return findings.ok("nothing holds back vacuum") };
    let Holder { name, application, state, transactions, .. } = holder;
    let age = holder.age.map_or(String::new(), |age| format!(" for {}", format_duration(age)));
    let (what, remedy) = match holder.kind.as_str() {
        "prepared" => (
            format!("prepared transaction {name:?} of {application:?} holds back vacuum{age}"),
            format!("COMMIT PREPARED or ROLLBACK PREPARED '{}'", name.replace('\'', "''")),
        ),
        "slot" => (
            format!("replication slot {name:?} ({state}) holds back vacuum by {transactions} transactions"),
            format!("see to its consumer, or drop it: SELECT pg_drop_replication_slot('{}')", name.replace('\'', "''")),
        ),
        _ => (
            format!(
                "session {name} of {application:?} ({state}) has had a transaction open{age}: it holds back vacuum"
            ),
            format!("end it in the application, or SELECT pg_terminate_backend({name})"),
        ),
    };
    if holder.age.is_none_or(|age| age >= transaction_age * FAR_TOO_OLD) {
        findings.problem(&what, &remedy)
    } else {
        findings.warning(&what, &remedy)
    }
}

fn dead_rows(table: &TableHealth, findings: &mut Findings) -> anyhow::Result<()> {
    let TableHealth { name, live_rows, dead_rows, .. } = table;
    let vacuumed = match table.vacuumed {
        Some(ago) => format!("last vacuumed {} ago", format_duration(ago)),
        None => "never vacuumed since the statistics began".to_owned(),
    };
    let what = format!("{name}: {live_rows} rows, {dead_rows} dead, {vacuumed}");
    if *dead_rows > MANY_DEAD && dead_rows > live_rows {
        findings.warning(&what, &format!("end what holds back vacuum, see that autovacuum is on, or VACUUM {name}"))
    } else {
        findings.ok(&what)
    }
}
