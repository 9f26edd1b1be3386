//! `outboxd dead-letters`

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::asking::{Asked, Asking, each, given};
use super::bulk::{self, Body, Change, Filter};
use super::global::Global;
use super::output::{self, NotUnderstood};
use super::process::event_type;
use super::shown;
use crate::event::{MAX_ATTEMPTS_LIMIT, MAX_DELAY_MS};
use crate::store::MAX_BULK;
use crate::timestamp::Timestamp;

/// List, requeue and discard events that were given up
#[derive(Debug, Subcommand)]
#[command(after_help = "Example: outboxd dead-letters list --type invoice.created --limit 10")]
pub(super) enum Command {
    List(ListArguments),
    Requeue(RequeueArguments),
    Discard(DiscardArguments),
}

/// List dead letters, newest first
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
    /// Where to go on: the cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

/// Make dead letters pending again, with no attempts spent: those that are named, or all that match
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  outboxd dead-letters requeue 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --delay-ms 60000
  outboxd dead-letters requeue --type invoice.created --error-contains timeout --all --spread-ms 600000")]
pub(super) struct RequeueArguments {
    #[command(flatten)]
    selecting: Selecting,
    /// Becomes due so many milliseconds from now; for one event
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=MAX_DELAY_MS))]
    delay_ms: Option<u64>,
    /// A new attempts limit, 1 to 100; for one event
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=i64::from(MAX_ATTEMPTS_LIMIT)))]
    max_attempts: Option<i32>,
    /// They become due at random instants within so many milliseconds; for several events
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=MAX_DELAY_MS))]
    spread_ms: Option<u64>,
    #[command(flatten)]
    asking: Asking,
}

/// Turn dead letters into skipped events, for good: those that are named, or all that match
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  outboxd dead-letters discard 0197a0c2-7b1e-7c3a-9f00-0242ac120002 --note 'test data'
  outboxd dead-letters discard --subject tenant/42 --dry-run")]
pub(super) struct DiscardArguments {
    #[command(flatten)]
    selecting: Selecting,
    #[command(flatten)]
    asking: Asking,
}

/// Which dead letters.
#[derive(Debug, Args)]
struct Selecting {
    /// Ids of events; none when a filter is given
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only events of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    types: Vec<String>,
    /// Only events of this subject
    #[arg(long)]
    subject: Option<String>,
    /// Only those whose last error contains this text
    #[arg(long, value_name = "TEXT")]
    error_contains: Option<String>,
    /// Only those that became dead letters later than this, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "INSTANT")]
    dead_after: Option<Timestamp>,
    /// Only those that became dead letters earlier than this
    #[arg(long, value_name = "INSTANT")]
    dead_before: Option<Timestamp>,
    /// Only say how many it would be
    #[arg(long)]
    dry_run: bool,
    /// Dead letters at most, 1 to 10000; with --all, in one request
    #[arg(long, default_value_t = MAX_BULK, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_BULK)))]
    limit: u32,
    /// Go on until none is left
    #[arg(long)]
    all: bool,
    /// Why; kept in each event's log, up to 200 characters
    #[arg(long)]
    note: Option<String>,
}

impl Selecting {
    /// The one event that is meant, when exactly one is named.
    fn only(&self) -> Option<&str> {
        match self.ids.as_slice() {
            [id] if !self.dry_run && self.filter().is_none() => Some(id),
            _ => None,
        }
    }

    fn filter(&self) -> Option<Filter> {
        let filter = Filter {
            types: self.types.clone(),
            subject: self.subject.clone(),
            error_contains: self.error_contains.clone(),
            dead_after: self.dead_after.map(|at| at.to_string()),
            dead_before: self.dead_before.map(|at| at.to_string()),
        };
        (filter != Filter::default()).then_some(filter)
    }

    /// Refuses what would mean every dead letter, or two things at once.
    fn body(&self) -> Result<Body, NotUnderstood> {
        let filter = self.filter();
        match (self.ids.is_empty(), &filter) {
            (true, None) => {
                let what = "which dead letters? Give ids, or at least one of --type, --subject, --error-contains, \
                            --dead-after, --dead-before";
                return Err(NotUnderstood(what.to_owned()));
            }
            (false, Some(_)) => return Err(NotUnderstood("ids and a filter: keep one of them".to_owned())),
            (true, Some(_)) | (false, None) => {}
        }
        Ok(Body {
            ids: self.ids.clone(),
            filter,
            dry_run: self.dry_run,
            limit: self.limit,
            note: self.note.clone(),
            ..Body::default()
        })
    }

    fn ids(&self) -> Vec<&str> {
        self.ids.iter().map(String::as_str).collect()
    }
}

pub(super) async fn run(global: &Global, command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => list(global, arguments).await,
        Command::Requeue(arguments) => requeue(global, arguments).await,
        Command::Discard(arguments) => discard(global, arguments).await,
    }
}

async fn list(global: &Global, arguments: ListArguments) -> anyhow::Result<()> {
    let asked = arguments.asking.begin(global, &[]).await?;
    let mut query = given([
        ("subject", arguments.subject),
        ("error_contains", arguments.error_contains),
        ("limit", Some(arguments.limit.to_string())),
        ("cursor", arguments.cursor),
    ]);
    query.extend(each("type", arguments.types));
    let page = asked.get(&["v1", "dead-letters"], query, |page| shown::page(page, "no dead letters")).await;
    asked.close().await;
    output::text(&page.context("dead letters cannot be listed")?)
}

async fn requeue(global: &Global, arguments: RequeueArguments) -> anyhow::Result<()> {
    let RequeueArguments { selecting, delay_ms, max_attempts, spread_ms, asking } = arguments;
    let body = Body { spread_ms, ..selecting.body()? };
    let Some(id) = selecting.only() else {
        if delay_ms.is_some() || max_attempts.is_some() {
            let what = "--delay-ms and --max-attempts are for one event; for several there is --spread-ms";
            return Err(NotUnderstood(what.to_owned()).into());
        }
        return many(global, &asking, &selecting, Change::Requeue, body).await;
    };
    // One event alone is spread by its delay.
    let body = json!({
        "delay_ms": delay_ms.unwrap_or_else(|| fastrand::u64(0..=spread_ms.unwrap_or(0))),
        "max_attempts": max_attempts,
        "note": selecting.note,
    });
    one(global, &asking, id, Change::Requeue, &body).await
}

async fn discard(global: &Global, arguments: DiscardArguments) -> anyhow::Result<()> {
    let DiscardArguments { selecting, asking } = arguments;
    let body = selecting.body()?;
    match selecting.only() {
        Some(id) => one(global, &asking, id, Change::Discard, &json!({ "note": selecting.note })).await,
        None => many(global, &asking, &selecting, Change::Discard, body).await,
    }
}

async fn one(global: &Global, asking: &Asking, id: &str, change: Change, body: &Value) -> anyhow::Result<()> {
    let asked = asking.begin(global, &[id]).await?;
    let event = asked.post(&["v1", "dead-letters", id, change.path()], body, shown::event).await;
    asked.close().await;
    output::text(&event.with_context(|| format!("event {id} was not changed"))?)
}

async fn many(
    global: &Global,
    asking: &Asking,
    selecting: &Selecting,
    change: Change,
    body: Body,
) -> anyhow::Result<()> {
    let asked: Asked = asking.begin(global, &selecting.ids()).await?;
    let result = bulk::run(&asked, change, body, selecting.all, asking.json).await;
    asked.close().await;
    result
}
