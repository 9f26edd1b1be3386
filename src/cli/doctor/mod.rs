//! `outboxd doctor`: what is right and what is wrong, each finding with what to do about it.
//!
//! It reads, a few rows at a time and under short timeouts, and changes nothing: whoever asks suspects that something is ill.

mod findings;
mod flow;
mod outbox;
mod server;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use self::findings::{Findings, Level};
use super::global::Global;
use crate::config::{AdoptedSettings, Config, mask_url};
use crate::handler::Registry;
use crate::processor::DEFAULT_OUTBOX;
use crate::store::description::Description;
use crate::store::postgres::inspect;
use crate::store::{Store, StoreError, StoreOptions, connect, connect_adopted};
use crate::timestamp::Timestamp;

/// A difference of clocks that hides in the time that a question takes.
const HARMLESS_DIFFERENCE_MS: i64 = 1_000;
/// What to do about a description that does not fit.
const DESCRIBE: &str = "bring the description in the settings to the table; `outboxd outbox inspect` proposes one";

/// Say what is right and what is wrong with the database, its outboxes and the settings
///
/// One line for each finding: ok, warning or problem, and a line that says what to do. Changes nothing. Exits with 1 when
/// there is a problem; warnings leave it at 0, unless --strict is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd doctor --config outboxd.toml")]
pub(super) struct Arguments {
    /// Print all findings as one JSON document
    #[arg(long)]
    json: bool,
    /// Exit with 1 when there is a warning, too
    #[arg(long)]
    strict: bool,
    /// How long a transaction may be open before it is named
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration)]
    transaction_age: Duration,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let mut findings = Findings::new(arguments.json);
    if let Some(warning) = config.database_warning() {
        findings.warning(&warning, "set DATABASE_URL, or database_url in outboxd.toml")?;
    }
    database(&config, arguments.transaction_age, &mut findings).await?;
    settings::settings(&config, &mut findings)?;
    findings.finish()?;
    match (findings.count(Level::Problem), findings.count(Level::Warning)) {
        (0, warnings) if warnings > 0 && arguments.strict => bail!("warnings were found ({warnings})"),
        (0, _) => Ok(()),
        (1, _) => bail!("one problem was found"),
        (problems, _) => bail!("{problems} problems were found"),
    }
}

/// The database and what stands in it.
async fn database(config: &Config, transaction_age: Duration, findings: &mut Findings) -> anyhow::Result<()> {
    let options = config.store();
    let place = mask_url(&options.url);
    let home = match connect(&options).await {
        Ok(home) => home,
        Err(error) => {
            return findings
                .problem(&format!("database_url {place}: {error}"), "check the address and who may write there");
        }
    };
    let answer = schema(home.as_ref(), findings).await?;
    if answer != Answer::None {
        // Why there are no routes is said with the settings.
        let (registry, adopted) =
            config.outboxes().unwrap_or_else(|_| (Registry::default(), config.outboxes_without_routes()));
        clock(&options, findings).await?;
        server::server(&options, &adopted, transaction_age, findings).await?;
        let runs = if answer == Answer::Current { flow::runs(home.as_ref(), findings).await? } else { None };
        let last_run = runs.iter().flatten().next().map(|run| run.started_at);
        let mut is_due = false;
        for Opened { name, store, registry, description } in
            outboxes(config, (&options, registry, adopted), &home, findings).await?
        {
            // Of our own table everything has been said with its schema.
            let is_usable = (answer == Answer::Current || !Arc::ptr_eq(&store, &home))
                && outbox::outbox(&name, store.as_ref(), description.as_ref(), findings).await?;
            if is_usable {
                if let Some(description) = &description {
                    outbox::statuses(&options, description, findings).await?;
                }
                is_due |= flow::outbox(&name, store.as_ref(), &registry, last_run, findings).await?;
            }
        }
        if runs.is_some_and(|runs| runs.is_empty()) {
            flow::no_runs(is_due, findings)?;
        }
    }
    home.close().await;
    Ok(())
}

/// An outbox of the settings.
struct Opened {
    name: String,
    store: Arc<dyn Store>,
    registry: Registry,
    /// Of an adopted one.
    description: Option<Description>,
}

/// Every outbox of the settings by its name, the default one first if it is served.
async fn outboxes(
    config: &Config,
    (options, registry, adopted): (&StoreOptions, Registry, Vec<AdoptedSettings>),
    home: &Arc<dyn Store>,
    findings: &mut Findings,
) -> anyhow::Result<Vec<Opened>> {
    let mut found = Vec::new();
    if config.default_outbox() {
        let (name, store) = (DEFAULT_OUTBOX.to_owned(), Arc::clone(home));
        found.push(Opened { name, store, registry, description: None });
    }
    for AdoptedSettings { description, registry, .. } in adopted {
        let name = description.name.clone();
        match connect_adopted(options, description.clone(), Arc::clone(home)).await {
            Ok(store) => found.push(Opened { name, store, registry, description: Some(description) }),
            Err(error) => findings.problem(&format!("outbox {name}: {error}"), DESCRIBE)?,
        }
    }
    Ok(found)
}

/// What came of asking the database for its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// There is no database to look into.
    None,
    /// It answers, and its schema is not as it should be. Described tables can be judged all the same.
    NotCurrent,
    /// All is well.
    Current,
}

/// Asks the database for its schema.
async fn schema(home: &dyn Store, findings: &mut Findings) -> anyhow::Result<Answer> {
    match home.ready().await {
        Ok(()) => {
            findings.ok("the database answers and can be written to")?;
            findings.ok("the schema is current")?;
            Ok(Answer::Current)
        }
        Err(error @ (StoreError::Unavailable { .. } | StoreError::Internal { .. } | StoreError::Locked { .. })) => {
            findings.problem(
                &error.to_string(),
                "check that the database is running and that host, port, login and database.pooler are right",
            )?;
            Ok(Answer::None)
        }
        Err(
            error @ (StoreError::SchemaOutdated
            | StoreError::SchemaTooNew { .. }
            | StoreError::SchemaBroken { .. }
            | StoreError::Unsupported { .. }
            | StoreError::Data { .. }),
        ) => {
            findings.ok("the database answers")?;
            findings.problem(&error.to_string(), "run `outboxd migrate` with a role that owns the schema")?;
            Ok(Answer::NotCurrent)
        }
    }
}

/// Only the database's clock decides; a difference misleads whoever compares logs, and receivers that check timestamps.
async fn clock(options: &StoreOptions, findings: &mut Findings) -> anyhow::Result<()> {
    if !options.url.starts_with("postgres") {
        return Ok(());
    }
    match inspect::clock(options).await {
        Ok(database) => {
            let difference_ms = (database.as_micros() - here().as_micros()) / 1_000;
            if difference_ms.abs() <= HARMLESS_DIFFERENCE_MS {
                findings.ok("the database's clock is this machine's")
            } else {
                findings.warning(
                    &format!(
                        "the database's clock differs from this machine's by {difference_ms} ms: its own decides what is \
                         due, but signatures carry this machine's"
                    ),
                    "let both keep time by NTP",
                )
            }
        }
        Err(error) => findings.problem(&format!("the database's clock cannot be read: {error}"), "run doctor again"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the machine's clock is what is judged here; nothing is decided by it")]
fn here() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
