//! Whether events flow: when the last run was, what is due, what nobody takes, what fails, what was left in processing.
//!
//! Every question is one that the service asks anyway, and bounded at any size of the tables.

use std::collections::BTreeMap;
use std::time::Duration;

use humantime::format_duration;

use super::findings::Findings;
use super::here;
use crate::event::Status;
use crate::handler::Registry;
use crate::run::{RunRecord, RunState, StopReason};
use crate::store::{DeadLetterQuery, EventQuery, LaneStats, RunPage, Store, StoreError};
use crate::timestamp::Timestamp;

/// Due events of this age are late, as on the page.
const LATE: Duration = Duration::from_mins(2);
/// A lease that has ended so long ago should have been taken back.
const STALE_LEASE: Duration = Duration::from_mins(2);
/// What is recent.
const LATELY: Duration = Duration::from_hours(24);
/// Runs and events that are looked at.
const RUNS: u32 = 50;
const EVENTS: u32 = 200;
/// Attempts from which on a share of failures means something.
const ENOUGH: u64 = 10;
/// What makes runs.
const CALL: &str = "see that the scheduler calls /v1/process or `outboxd process` every minute with a valid token, or set [poller] interval";
/// Names that one finding lists.
const NAMED: usize = 10;

/// The last runs on this database, newest first, `None` when they cannot be read; says when the last one was and how the
/// last one that is over ended. That there is none says [`no_runs`].
pub(super) async fn runs(home: &dyn Store, findings: &mut Findings) -> anyhow::Result<Option<Vec<RunRecord>>> {
    match home.runs(&RunPage { after: None, limit: RUNS }).await {
        Ok(runs) => {
            if let Some(last) = runs.first() {
                let (ago, trigger) = (since(last.started_at), last.trigger.as_str());
                findings.ok(&format!("the last run began {} ago ({trigger})", words(ago)))?;
            }
            if let Some(over) = runs.iter().find(|run| run.report.state != RunState::Running) {
                end(over, findings)?;
            }
            failures(&runs, findings)?;
            Ok(Some(runs))
        }
        Err(error) => {
            unread("runs", &error, findings)?;
            Ok(None)
        }
    }
}

/// No run is known: as it should be while nothing is due.
pub(super) fn no_runs(is_due: bool, findings: &mut Findings) -> anyhow::Result<()> {
    if is_due {
        findings.warning("no run has been kept yet, although events are due", CALL)
    } else {
        findings.ok("no run has been kept yet")
    }
}

/// How the last run that is over ended, where it did not end well.
fn end(run: &RunRecord, findings: &mut Findings) -> anyhow::Result<()> {
    let ago = words(since(run.started_at));
    match (run.report.state, run.report.stop_reason) {
        (RunState::Lost, _) => findings.warning(
            &format!("the last run that is over was lost: it began {ago} ago, and its instance ended before it reported"),
            "see why the instance ended: killed for memory, or by a platform's limit of time that is shorter than the run's budget",
        ),
        (RunState::Finished, Some(StopReason::Error)) => findings.warning(
            &format!("the last run that is over began {ago} ago and ended with stop_reason error: the database failed it"),
            "read the service's log of that time, and make a run with `outboxd process`",
        ),
        (RunState::Running | RunState::Finished, _) => Ok(()),
    }
}

/// What share of the claimed events failed lately.
fn failures(runs: &[RunRecord], findings: &mut Findings) -> anyhow::Result<()> {
    let recent: Vec<&RunRecord> = runs.iter().filter(|run| since(run.started_at) < LATELY).collect();
    let (claimed, failed) = recent.iter().fold((0, 0), |(claimed, failed), run| {
        (claimed + run.report.claimed, failed + run.report.retried + run.report.dead_lettered)
    });
    if claimed >= ENOUGH && failed * 2 >= claimed {
        findings.warning(
            &format!("{failed} of the {claimed} events that the last {} runs claimed failed", recent.len()),
            "look at last_error of the events that wait, and at the receivers",
        )?;
    }
    Ok(())
}

/// One outbox; whether events are due in it that a route may take.
pub(super) async fn outbox(
    name: &str,
    store: &dyn Store,
    registry: &Registry,
    last_run: Option<Timestamp>,
    findings: &mut Findings,
) -> anyhow::Result<bool> {
    let is_due = match store.stats().await {
        Ok(stats) => {
            unrouted(name, &stats.lanes, registry, findings)?;
            due(name, &stats.lanes, registry, last_run, findings)?
        }
        Err(error) => {
            unread("due events", &error, findings)?;
            false
        }
    };
    match stale_leases(store).await {
        Ok(0) => {}
        Ok(count) => findings.warning(
            &format!("outbox {name:?}: {count} events have been in processing for longer than their leases"),
            "any run takes them back: see that runs are made, and why their instances ended",
        )?,
        Err(error) => unread("leases", &error, findings)?,
    }
    dead_letters(name, store, registry, findings).await?;
    Ok(is_due)
}

/// Types that wait and that no route takes.
fn unrouted(name: &str, lanes: &[LaneStats], registry: &Registry, findings: &mut Findings) -> anyhow::Result<()> {
    let waits = |lane: &&LaneStats| lane.oldest_due_micros.is_some() && registry.route_for(&lane.event_type).is_none();
    let types: Vec<&str> = lanes.iter().filter(waits).map(|lane| lane.event_type.as_str()).collect();
    if types.is_empty() {
        return Ok(());
    }
    let more = if types.len() > NAMED { ", and others" } else { "" };
    let types = types.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if registry.routes().is_empty() {
        return findings.warning(
            &format!("outbox {name:?}: no routes are known here, and events of these types are due: {types}{more}"),
            "give doctor the service's settings and secrets, or add a [[route]] where the service has none either",
        );
    }
    findings.warning(
        &format!("outbox {name:?}: events are due whose types no route takes: {types}{more}"),
        "add a [[route]] for them; they wait, and no attempt is spent",
    )
}

/// How old the oldest due event is that a route takes, of all types where no routes are known, and whether anybody has
/// called since. Whether there is one.
fn due(
    name: &str,
    lanes: &[LaneStats],
    registry: &Registry,
    last_run: Option<Timestamp>,
    findings: &mut Findings,
) -> anyhow::Result<bool> {
    let is_blind = registry.routes().is_empty();
    let routed = lanes.iter().filter(|lane| is_blind || registry.route_for(&lane.event_type).is_some());
    let oldest = routed.filter_map(|lane| lane.oldest_due_micros).max();
    let Some(age) = oldest.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))) else {
        findings
            .ok(&format!("outbox {name:?}: nothing waits that is due{}", if is_blind { "" } else { " and routed" }))?;
        return Ok(false);
    };
    let of = if is_blind { " of any type" } else { "" };
    let what = format!("outbox {name:?}: the oldest due event{of} waits for {}", words(age));
    let has_called = last_run.is_some_and(|at| since(at) < LATE);
    match (age > LATE, has_called) {
        (false, _) => findings.ok(&what),
        (true, true) => findings.warning(
            &format!("{what}, although runs are made"),
            "give runs more time or a larger batch, call more often, or see why its receiver is slow",
        ),
        (true, false) => findings.problem(
            &format!(
                "{what}, and NOTHING HAS CALLED for {}",
                last_run.map_or("ever".to_owned(), |at| words(since(at)))
            ),
            CALL,
        ),
    }?;
    Ok(true)
}

/// Of the first events in processing, how many have a lease that ended long ago.
async fn stale_leases(store: &dyn Store) -> Result<usize, StoreError> {
    let statuses = vec![Status::Processing];
    let page = store.events(&EventQuery { statuses, rising: true, limit: EVENTS, ..EventQuery::default() }).await?;
    let is_stale = |until: Timestamp| since(until) > STALE_LEASE;
    Ok(page.events.iter().filter(|event| event.lease_until.is_some_and(is_stale)).count())
}

/// Which routes have made dead letters lately.
async fn dead_letters(
    name: &str,
    store: &dyn Store,
    registry: &Registry,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let query = DeadLetterQuery { limit: EVENTS, ..DeadLetterQuery::default() };
    let page = match store.dead_letters(&query).await {
        Ok(page) => page,
        Err(error) => return unread("dead letters", &error, findings),
    };
    let mut by_route: BTreeMap<&str, usize> = BTreeMap::new();
    for event in page.events.iter().filter(|event| event.dead_at.is_some_and(|at| since(at) < LATELY)) {
        let route = registry.route_for(&event.event_type).map_or("(none)", |route| route.name.as_str());
        *by_route.entry(route).or_default() += 1;
    }
    for (route, count) in by_route {
        let least = if page.next.is_some() { "at least " } else { "" };
        findings.warning(
            &format!("outbox {name:?}: {least}{count} events of route {route:?} became dead letters within a day"),
            "read why with `outboxd dead-letters list`, mend the receiver, then `outboxd dead-letters requeue`",
        )?;
    }
    Ok(())
}

fn unread(what: &str, error: &StoreError, findings: &mut Findings) -> anyhow::Result<()> {
    findings.warning(&format!("{what} cannot be read: {error}"), "run doctor again when the database is less busy")
}

/// How long ago that was, by this machine's clock.
fn since(at: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(here().as_micros() - at.as_micros()).unwrap_or(0))
}

fn words(duration: Duration) -> String {
    format_duration(Duration::from_secs(duration.as_secs())).to_string()
}
