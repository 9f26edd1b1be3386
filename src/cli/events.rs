//! `outboxd events`

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::asking::{Asking, each, given};
use super::global::Global;
use super::process::event_type;
use super::{output, shown};
use crate::event::Status;
use crate::timestamp::Timestamp;

/// List, show and cancel events
#[derive(Debug, Subcommand)]
#[command(after_help = "Example: outboxd events list --status pending --type invoice.created")]
pub(super) enum Command {
    List(ListArguments),
    Show(ShowArguments),
    Cancel(CancelArguments),
}

/// List events, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Example: outboxd events list --status pending --status processing --type invoice.created --limit 20"
)]
pub(super) struct ListArguments {
    /// Only events with this status; may be given several times
    #[arg(long = "status", value_name = "STATUS", value_parser = status)]
    statuses: Vec<Status>,
    /// Only events of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    types: Vec<String>,
    /// Only events of this subject
    #[arg(long)]
    subject: Option<String>,
    /// Only events that were enqueued later than this, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "INSTANT")]
    created_after: Option<Timestamp>,
    /// Only events that were enqueued earlier than this
    #[arg(long, value_name = "INSTANT")]
    created_before: Option<Timestamp>,
    /// desc: newest first; asc: oldest first
    #[arg(long, value_enum, default_value_t = Order::Desc)]
    order: Order,
    /// Events at most, 1 to 200
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where to go on: the cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

/// Print one event with its payload
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd events show 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --attempts")]
pub(super) struct ShowArguments {
    /// The event's id
    id: String,
    /// Print its logs too: each attempt, and what operators did
    #[arg(long)]
    attempts: bool,
    #[command(flatten)]
    asking: Asking,
}

/// Turn a pending event into a skipped one
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd events cancel 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --reason 'wrong order'")]
pub(super) struct CancelArguments {
    /// The event's id
    id: String,
    /// Why; kept as the event's last error and in its log, up to 200 characters
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    Desc,
    Asc,
}

pub(super) async fn run(global: &Global, command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => list(global, arguments).await,
        Command::Show(arguments) => show(global, arguments).await,
        Command::Cancel(arguments) => cancel(global, arguments).await,
    }
}

async fn list(global: &Global, arguments: ListArguments) -> anyhow::Result<()> {
    let asked = arguments.asking.begin(global, &[]).await?;
    let order = match arguments.order {
        Order::Desc => "desc",
        Order::Asc => "asc",
    };
    let mut query = given([
        ("subject", arguments.subject),
        ("created_after", arguments.created_after.map(|at| at.to_string())),
        ("created_before", arguments.created_before.map(|at| at.to_string())),
        ("order", Some(order.to_owned())),
        ("limit", Some(arguments.limit.to_string())),
        ("cursor", arguments.cursor),
    ]);
    query.extend(each("status", arguments.statuses.iter().map(ToString::to_string).collect()));
    query.extend(each("type", arguments.types));
    let page = asked.get(&["v1", "events"], query, |page| shown::page(page, "no events")).await;
    asked.close().await;
    output::text(&page.context("events cannot be listed")?)
}

async fn show(global: &Global, arguments: ShowArguments) -> anyhow::Result<()> {
    let id = &arguments.id;
    let asked = arguments.asking.begin(global, &[id]).await?;
    let query = given([("include", arguments.attempts.then(|| "attempts".to_owned()))]);
    let event = asked.get(&["v1", "events", id], query, shown::event).await;
    asked.close().await;
    output::text(&event.with_context(|| format!("event {id} cannot be shown"))?)
}

async fn cancel(global: &Global, arguments: CancelArguments) -> anyhow::Result<()> {
    let id = &arguments.id;
    let asked = arguments.asking.begin(global, &[id]).await?;
    let body = json!({ "reason": arguments.reason });
    let event = asked.post(&["v1", "events", id, "cancel"], &body, shown::event).await;
    asked.close().await;
    output::text(&event.with_context(|| format!("event {id} was not cancelled"))?)
}

fn status(text: &str) -> Result<Status, String> {
    text.parse::<Status>().map_err(|error| error.to_string())
}
