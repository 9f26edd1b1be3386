//! `outboxd stats`

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::database::{self, Schema};
use super::global::Global;
use super::outboxes::{self, OutboxArgument};
use super::output;
use super::remote::ServerArguments;
use crate::config::Config;
use crate::handler::Registry;
use crate::processor::DEFAULT_OUTBOX;
use crate::run::StopReason;
use crate::sampler::{LaneView, MinuteView, StatsView};
use crate::store::{RunPage, Store, StoreError};

/// Minutes of what has ended.
const MINUTES: u16 = 60;

/// Print what stands in the lanes: due, scheduled, processing, dead letters, and how long the oldest due event has waited
///
/// Counts stop at 100,000 a lane, or earlier where there are many lanes, and then have a plus behind them; ages are exact. Asks
/// the database, or a server where one is named.
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd stats --json")]
pub(super) struct Arguments {
    /// Print JSON, as GET /v1/stats answers
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    outbox: OutboxArgument,
    #[command(flatten)]
    server: ServerArguments,
}

/// An outbox to be counted; without routes nobody can say what is routed.
struct Counted {
    name: String,
    store: Arc<dyn Store>,
    routes: Option<Registry>,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let stats = match arguments.server.open(global)? {
        Some(server) => {
            let outbox = arguments.outbox.name().map(|name| ("outbox", name.to_owned()));
            let query: Vec<(&str, String)> = outbox.into_iter().collect();
            server.get_as(&["v1", "stats"], &query).await?
        }
        None => of_database(&config, &arguments.outbox).await?,
    };
    if arguments.json { output::json(&stats) } else { output::text(&table(&stats)) }
}

async fn of_database(config: &Config, outbox: &OutboxArgument) -> anyhow::Result<StatsView> {
    let home = database::open_configured(config, Schema::Require).await?;
    let counted = match config.outboxes() {
        Ok((registry, adopted)) => {
            let known =
                !registry.routes().is_empty() || adopted.iter().any(|outbox| !outbox.registry.routes().is_empty());
            let mut all = Vec::new();
            if config.default_outbox() {
                all.push((DEFAULT_OUTBOX.to_owned(), Arc::clone(&home), registry));
            }
            let adopted = outboxes::adopted(&config.store(), adopted, &home).await?;
            all.extend(adopted.into_iter().map(|outbox| (outbox.name, outbox.store, outbox.registry)));
            let described = outbox.name().map(|_| outbox.description(config)).transpose()?;
            let wanted = described.map(|found| found.map_or(DEFAULT_OUTBOX, |found| found.name.as_str()).to_owned());
            all.retain(|(name, _, _)| wanted.as_ref().is_none_or(|wanted| wanted == name));
            let counted = |(name, store, routes)| Counted { name, store, routes: Some(routes).filter(|_| known) };
            all.into_iter().map(counted).collect()
        }
        Err(error) => {
            tracing::warn!(%error, "the routes cannot be read: what is routed is not known");
            let chosen = outboxes::Chosen::open(config, outbox.description(config)?).await?;
            vec![Counted { name: chosen.name.clone(), store: Arc::clone(&chosen.store), routes: None }]
        }
    };
    let stats = count(&home, &counted).await.map_err(output::without_causes).context("events cannot be counted");
    for outbox in &counted {
        outbox.store.close().await;
    }
    home.close().await;
    stats
}

async fn count(home: &Arc<dyn Store>, counted: &[Counted]) -> Result<StatsView, StoreError> {
    let mut view = StatsView::default();
    for Counted { name, store, routes } in counted {
        view.outboxes.push(name.clone());
        let stats = store.stats().await?;
        view.as_of = Some(view.as_of.map_or(stats.as_of, |oldest| oldest.min(stats.as_of)));
        view.more_lanes |= stats.has_more_lanes;
        view.lanes.extend(stats.lanes.iter().map(|lane| {
            let routed = routes.as_ref().map(|routes| routes.route_for(&lane.event_type).is_some());
            LaneView::new(name, lane, routed)
        }));
        let minutes = store.minutes(name, MINUTES).await?.into_iter();
        view.last_hour.extend(minutes.map(|minute| MinuteView { outbox: name.clone(), minute }));
    }
    view.last_hour.sort_by_key(|minute| minute.minute.minute);
    view.last_run = home.runs(&RunPage { after: None, limit: 1 }).await?.into_iter().next();
    Ok(view)
}

const HEAD: [&str; 8] = ["OUTBOX", "TYPE", "DUE", "OLDEST", "SCHEDULED", "PROCESSING", "DEAD", "ROUTED"];

/// The lanes as lines, those that have waited longest first.
fn table(stats: &StatsView) -> String {
    let mut lanes: Vec<&LaneView> = stats.lanes.iter().collect();
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.oldest_due_age_ms));
    let rows: Vec<[String; 8]> = std::iter::once(HEAD.map(str::to_owned)).chain(lanes.into_iter().map(row)).collect();
    let widths: [usize; 8] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if stats.lanes.is_empty() {
        lines = vec!["no live events and no dead letters".to_owned()];
    }
    if stats.more_lanes {
        lines.push("there are more lanes than are shown".to_owned());
    }
    lines.push(last_run(stats));
    lines.join("\n")
}

fn row(lane: &LaneView) -> [String; 8] {
    let count = |count: u64| if lane.capped && count > 0 { format!("{count}+") } else { count.to_string() };
    let age = lane.oldest_due_age_ms.map_or_else(|| "-".to_owned(), age);
    let routed = lane.routed.map_or("?", |routed| if routed { "yes" } else { "NO" });
    // An adopted table's types may hold anything.
    let printable = |text: &str| text.replace(char::is_control, "?");
    [
        printable(&lane.outbox),
        printable(&lane.event_type),
        count(lane.due),
        age,
        count(lane.scheduled),
        count(lane.processing),
        count(lane.dead_letter),
        routed.to_owned(),
    ]
}

/// Whole seconds.
fn age(milliseconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(milliseconds / 1_000)).to_string()
}

fn last_run(stats: &StatsView) -> String {
    let Some(run) = &stats.last_run else { return "no run is known".to_owned() };
    let report = &run.report;
    let end = report.stop_reason.map_or("not ended", StopReason::as_str);
    let (at, trigger, claimed) = (run.started_at, run.trigger.as_str(), report.claimed);
    let ago = stats.as_of.map(|now| now.as_micros().saturating_sub(run.started_at.as_micros()) / 1_000);
    let ago = ago.map_or_else(String::new, |ago| format!(", {} ago", age(u64::try_from(ago).unwrap_or(0))));
    format!("last run: {at}{ago}, by {trigger}, claimed {claimed}, {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(event_type: &str, due: u64, age_ms: Option<u64>) -> LaneView {
        LaneView {
            outbox: "default".to_owned(),
            event_type: event_type.to_owned(),
            due,
            scheduled: 0,
            processing: 0,
            dead_letter: 3,
            oldest_due_age_ms: age_ms,
            routed: Some(true),
            capped: due >= 100_000,
        }
    }

    #[test]
    fn the_table_has_the_longest_wait_first_and_marks_what_was_not_counted_to_its_end() {
        let lanes = vec![lane("a", 0, None), lane("b\u{1b}[1m", 100_000, Some(3_723_500)), lane("c", 1, Some(59_000))];
        let text = table(&StatsView { lanes, more_lanes: true, ..StatsView::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("OUTBOX   TYPE"), "{text}");
        assert!(lines[1].contains("b?[1m  100000+  1h 2m 3s") && lines[1].contains(" 3+ "), "{text}");
        assert!(lines[2].contains(" c ") && lines[3].contains(" a "), "{text}");
        assert_eq!(lines[4..], ["there are more lanes than are shown", "no run is known"]);
    }

    #[test]
    fn an_empty_table_says_so() {
        assert_eq!(table(&StatsView::default()), "no live events and no dead letters\nno run is known");
    }
}
