//! `outboxd outbox`

mod text;

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::global::Global;
use super::output;
use crate::store::StoreOptions;
use crate::store::description::TableName;
use crate::store::postgres::inspect::{InspectError, inspect};

/// Look at tables that are, or could become, outboxes
#[derive(Debug, Subcommand)]
#[command(after_help = "Example: outboxd outbox inspect 'public.\"NotificationDelivery\"'")]
pub(super) enum Command {
    /// Propose a description of a table, the indexes that it lacks, and show how outboxd would run on it
    ///
    /// Reads the catalogue and at most 10,000 rows, and changes nothing. Exits with 0 when a whole description could be
    /// proposed, with no guess marked with ?, and every hot statement is bounded by an index, else with 1. Postgres only.
    #[command(after_help = "Example: outboxd outbox inspect 'public.\"NotificationDelivery\"'")]
    Inspect {
        /// The table as SQL names it; without a schema the search path finds it
        #[arg(value_name = "TABLE", value_parser = table_name)]
        table: TableName,
        /// Print one JSON document instead of text
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(global: &Global, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Inspect { table, json } => {
            let config = global.begin(None)?;
            if let Some(warning) = config.database_warning() {
                tracing::warn!("{warning}");
            }
            look_at(&config.store(), &table, json).await
        }
    }
}

async fn look_at(options: &StoreOptions, table: &TableName, json: bool) -> anyhow::Result<()> {
    if !options.url.starts_with("postgres") {
        bail!(
            "outbox inspect reads the catalogue of a Postgres database, and database_url names none: \
             give --database-url postgres://…; a table on SQLite has to be described by hand"
        );
    }
    let inspection = match inspect(options, table).await {
        Ok(inspection) => inspection,
        Err(InspectError::Store(error)) => return Err(output::without_causes(error)).context("nothing could be read"),
        Err(error) => return Err(error.into()),
    };
    if json {
        output::json(&inspection)?;
    } else {
        output::text(text::inspection(&inspection).trim_end())?;
    }
    if !inspection.is_sound() {
        bail!("{}", text::what_is_wrong(&inspection));
    }
    Ok(())
}

fn table_name(text: &str) -> Result<TableName, String> {
    TableName::parse(text).map_err(|error| error.to_string())
}
