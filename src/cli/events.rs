//! `outboxd events`

use anyhow::{Context as _, anyhow};
use clap::Subcommand;

use super::database::{self, Schema};
use super::global::Global;
use super::output;
use super::process::event_id;
use crate::api::EventView;
use crate::event::EventId;

/// Look at events
#[derive(Debug, Subcommand)]
#[command(after_help = "Example: outboxd events show 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --attempts")]
pub(super) enum Command {
    /// Print one event with its payload as JSON
    #[command(after_help = "Example: outboxd events show 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --attempts")]
    Show {
        /// The event's id
        #[arg(value_parser = event_id)]
        id: EventId,
        /// Print its attempt log too
        #[arg(long)]
        attempts: bool,
    },
}

pub(super) async fn run(global: &Global, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Show { id, attempts } => show(global, id, attempts).await,
    }
}

async fn show(global: &Global, id: EventId, with_attempts: bool) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let store = database::open_configured(&config, Schema::Require).await?;
    let event = store.event(&id, true).await.map_err(output::without_causes).context("the event cannot be read")?;
    let event = event.ok_or_else(|| anyhow!("there is no event {id}"))?;
    let attempts = if with_attempts {
        Some(store.attempts(&id).await.map_err(output::without_causes).context("the attempts cannot be read")?)
    } else {
        None
    };
    store.close().await;
    let view = EventView::whole(event);
    output::json(&match attempts {
        Some(attempts) => view.with_attempts(attempts),
        None => view,
    })
}
