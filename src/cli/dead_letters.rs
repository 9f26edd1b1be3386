//! `outboxd dead-letters`

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::global::Global;
use super::outboxes::{Chosen, OutboxArgument};
use super::output;
use super::process::event_type;
use crate::api::EventView;
use crate::event::{EventId, MAX_ATTEMPTS_LIMIT, MAX_DELAY_MS};
use crate::outcome::{MAX_REASON_CHARS, stored_text};
use crate::store::{DeadLetterPosition, DeadLetterQuery, RequeueChange, StoreError, Transition};

/// What is written as the reason of a discard without a note.
const DISCARDED: &str = "discarded by an operator";

/// List, requeue and discard events that were given up
#[derive(Debug, Subcommand)]
#[command(after_help = "Example: outboxd dead-letters list --type invoice.created --limit 10")]
pub(super) enum Command {
    List(ListArguments),
    Requeue(RequeueArguments),
    Discard(DiscardArguments),
}

/// Print a page of dead letters as JSON, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd dead-letters list --type invoice.created --error-contains timeout")]
pub(super) struct ListArguments {
    /// Only events of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    types: Vec<String>,
    /// Only events of this subject
    #[arg(long)]
    subject: Option<String>,
    /// Only those whose last error contains this text
    #[arg(long, value_name = "TEXT")]
    error_contains: Option<String>,
    /// Dead letters at most, 1 to 200
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where to go on: the next cursor of the page before
    #[arg(long, value_parser = cursor)]
    cursor: Option<DeadLetterPosition>,
    #[command(flatten)]
    outbox: OutboxArgument,
}

/// Make a dead letter pending again, with no attempts spent, and print it as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd dead-letters requeue 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --delay-ms 60000")]
pub(super) struct RequeueArguments {
    /// The event's id
    id: String,
    /// Becomes due so many milliseconds from now
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=MAX_DELAY_MS))]
    delay_ms: u64,
    /// A new attempts limit, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=i64::from(MAX_ATTEMPTS_LIMIT)))]
    max_attempts: Option<i32>,
    /// Why; written to the log
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    outbox: OutboxArgument,
}

/// Turn a dead letter into a skipped event, for good, and print it as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd dead-letters discard 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --note 'test data'")]
pub(super) struct DiscardArguments {
    /// The event's id
    id: String,
    /// Why; kept as the event's last error, up to 200 characters
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    outbox: OutboxArgument,
}

/// A page of dead letters.
#[derive(Serialize)]
struct Page {
    data: Vec<EventView>,
    next_cursor: Option<String>,
}

pub(super) async fn run(global: &Global, command: Command) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    match command {
        Command::List(arguments) => {
            let outbox = Chosen::open(&config, arguments.outbox.description(&config)?).await?;
            let result = list(&outbox, arguments).await;
            outbox.close().await;
            result
        }
        Command::Requeue(arguments) => {
            let (outbox, id) = Chosen::open_with_id(&config, &arguments.outbox, &arguments.id).await?;
            let result = requeue(&outbox, &id, arguments).await;
            outbox.close().await;
            result
        }
        Command::Discard(arguments) => {
            let (outbox, id) = Chosen::open_with_id(&config, &arguments.outbox, &arguments.id).await?;
            let result = discard(&outbox, &id, arguments).await;
            outbox.close().await;
            result
        }
    }
}

async fn list(outbox: &Chosen, arguments: ListArguments) -> anyhow::Result<()> {
    let query = DeadLetterQuery {
        types: arguments.types,
        subject: arguments.subject,
        error_contains: arguments.error_contains,
        after: arguments.cursor,
        limit: arguments.limit,
        with_payload: true,
    };
    let page = outbox
        .store
        .dead_letters(&query)
        .await
        .map_err(output::without_causes)
        .context("dead letters cannot be read")?;
    let data = page.events.into_iter().map(|event| EventView::of_outbox(event, &outbox.name)).collect();
    let next_cursor = page.next.map(|place| format!("{},{}", place.dead_at, place.id));
    output::json(&Page { data, next_cursor })
}

async fn requeue(outbox: &Chosen, id: &EventId, arguments: RequeueArguments) -> anyhow::Result<()> {
    let change =
        RequeueChange { delay: Duration::from_millis(arguments.delay_ms), max_attempts: arguments.max_attempts };
    let transition = outbox.store.requeue(id, &change, &crate::store::Actor::new("cli")).await;
    if matches!(transition, Ok(Transition::Applied(_))) {
        tracing::info!(event_id = %id, note = arguments.note.as_deref(), "a dead letter was requeued");
    }
    applied(outbox, id, transition).await
}

async fn discard(outbox: &Chosen, id: &EventId, arguments: DiscardArguments) -> anyhow::Result<()> {
    let reason = stored_text(arguments.note.as_deref().unwrap_or(DISCARDED), MAX_REASON_CHARS);
    applied(outbox, id, outbox.store.discard(id, &reason, &crate::store::Actor::new("cli")).await).await
}

/// Prints the event that was changed with its payload, or says why it was not.
async fn applied(outbox: &Chosen, id: &EventId, transition: Result<Transition, StoreError>) -> anyhow::Result<()> {
    match transition.map_err(output::without_causes).context("the event was not changed")? {
        Transition::Applied(mut event) => {
            // The change is done: failing to read the payload only leaves it out.
            event.payload = outbox.store.event(id, true).await.ok().flatten().and_then(|now| now.payload);
            output::json(&EventView::of_outbox(*event, &outbox.name))
        }
        Transition::Refused(event) => bail!("event {id} is not a dead letter: it is {}", event.status),
        Transition::Absent => Err(anyhow!("there is no event {id}")),
    }
}

/// `dead_at,id` of the last dead letter that was looked at.
fn cursor(text: &str) -> Result<DeadLetterPosition, String> {
    let place = text
        .split_once(',')
        .and_then(|(dead_at, id)| Some(DeadLetterPosition { dead_at: dead_at.parse().ok()?, id: id.parse().ok()? }));
    place.ok_or_else(|| "valid is the next_cursor of the page before".to_owned())
}
