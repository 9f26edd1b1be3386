//! `outboxd events`

use anyhow::{Context as _, anyhow};
use clap::Subcommand;

use super::global::Global;
use super::outboxes::{Chosen, OutboxArgument};
use super::output;
use crate::api::EventView;

/// Look at events
#[derive(Debug, Subcommand)]
#[command(after_help = "Example: outboxd events show 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --attempts")]
pub(super) enum Command {
    /// Print one event with its payload as JSON
    #[command(after_help = "Example: outboxd events show 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --attempts")]
    Show {
        /// The event's id
        id: String,
        /// Print its attempt log too
        #[arg(long)]
        attempts: bool,
        #[command(flatten)]
        outbox: OutboxArgument,
    },
}

pub(super) async fn run(global: &Global, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Show { id, attempts, outbox } => show(global, &id, attempts, &outbox).await,
    }
}

async fn show(global: &Global, id: &str, with_attempts: bool, outbox: &OutboxArgument) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let (outbox, id) = Chosen::open_with_id(&config, outbox, id).await?;
    let store = &outbox.store;
    let event = store.event(&id, true).await.map_err(output::without_causes).context("the event cannot be read")?;
    let event = event.ok_or_else(|| anyhow!("there is no event {id}"))?;
    let attempts = if with_attempts {
        Some(store.attempts(&id).await.map_err(output::without_causes).context("the attempts cannot be read")?)
    } else {
        None
    };
    outbox.close().await;
    let view = EventView::of_outbox(event, &outbox.name);
    output::json(&match attempts {
        Some(attempts) => view.with_logs(attempts, Vec::new()),
        None => view,
    })
}
