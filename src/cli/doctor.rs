//! `outboxd doctor`

use std::sync::Arc;

use anyhow::bail;
use clap::Args;

use super::global::Global;
use super::output;
use crate::config::{AdoptedSettings, Config, mask_url};
use crate::processor::DEFAULT_OUTBOX;
use crate::store::postgres::inspect;
use crate::store::{Store, StoreError, StoreOptions, connect, connect_adopted};
use crate::timestamp::Timestamp;

/// A difference of clocks that hides in the time that a question takes.
const HARMLESS_DIFFERENCE_MS: i64 = 1_000;

/// Say what is right and what is wrong with the database and its outboxes
///
/// One line for each finding: ok, warning or problem. Changes nothing. Exits with 1 when there is a problem.
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd doctor --config outboxd.toml")]
pub(super) struct Arguments {}

pub(super) async fn run(global: &Global, _arguments: Arguments) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let mut findings = Findings::default();
    if let Some(warning) = config.database_warning() {
        findings.warning(&warning)?;
    }
    let options = config.store();
    let place = mask_url(&options.url);
    match connect(&options).await {
        Ok(home) => {
            let answer = schema(home.as_ref(), &mut findings).await?;
            if answer != Answer::None {
                clock(&options, &mut findings).await?;
                for (name, store) in outboxes(&config, &options, &home, &mut findings).await? {
                    // Of our own table everything has been said with its schema.
                    if answer == Answer::Current || !Arc::ptr_eq(&store, &home) {
                        outbox(&name, store.as_ref(), &mut findings).await?;
                    }
                }
            }
            home.close().await;
        }
        Err(error) => findings.problem(&format!("database_url {place}: {error}"))?,
    }
    match findings.problems {
        0 => Ok(()),
        1 => bail!("one problem was found"),
        problems => bail!("{problems} problems were found"),
    }
}

/// Every outbox of the settings by its name, the default one first if it is served.
async fn outboxes(
    config: &Config,
    options: &StoreOptions,
    home: &Arc<dyn Store>,
    findings: &mut Findings,
) -> anyhow::Result<Vec<(String, Arc<dyn Store>)>> {
    let mut found = Vec::new();
    if config.default_outbox() {
        found.push((DEFAULT_OUTBOX.to_owned(), Arc::clone(home)));
    }
    let (_, adopted) = config.outboxes()?;
    for AdoptedSettings { description, .. } in adopted {
        let name = description.name.clone();
        match connect_adopted(options, description, Arc::clone(home)).await {
            Ok(store) => found.push((name, store)),
            Err(error) => findings.problem(&format!("outbox {name}: {error}"))?,
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
            findings.problem(&error.to_string())?;
            Ok(Answer::None)
        }
        Err(
            error @ (StoreError::SchemaOutdated
            | StoreError::SchemaTooNew { .. }
            | StoreError::SchemaBroken { .. }
            | StoreError::Data { .. }),
        ) => {
            findings.ok("the database answers")?;
            findings.problem(&error.to_string())?;
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
                findings.warning(&format!(
                    "the database's clock differs from this machine's by {difference_ms} ms: its own decides what is due, \
                     but signatures carry this machine's"
                ))
            }
        }
        Err(error) => findings.problem(&format!("the database's clock cannot be read: {error}")),
    }
}

#[expect(clippy::disallowed_methods, reason = "the machine's clock is what is judged here; nothing is decided by it")]
fn here() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Whether an outbox's description fits its table, and what that table does not allow.
async fn outbox(name: &str, store: &dyn Store, findings: &mut Findings) -> anyhow::Result<()> {
    match store.limitations().await {
        Ok(limitations) => {
            findings.ok(&format!("outbox {name:?} can be used"))?;
            limitations.iter().try_for_each(|limitation| findings.warning(&format!("outbox {name:?}: {limitation}")))
        }
        Err(error) => findings.problem(&format!("outbox {name:?}: {error}")),
    }
}

/// Says each finding at once and counts what is wrong.
#[derive(Default)]
struct Findings {
    problems: usize,
}

impl Findings {
    #[allow(clippy::unused_self, reason = "all findings are said to the same listener")]
    fn ok(&mut self, what: &str) -> anyhow::Result<()> {
        output::text(&format!("ok       {what}"))
    }

    #[allow(clippy::unused_self, reason = "all findings are said to the same listener")]
    fn warning(&mut self, what: &str) -> anyhow::Result<()> {
        output::text(&format!("warning  {what}"))
    }

    fn problem(&mut self, what: &str) -> anyhow::Result<()> {
        self.problems += 1;
        output::text(&format!("problem  {what}"))
    }
}
