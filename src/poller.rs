//! The built-in timer: runs by itself, for those without a scheduler.
//!
//! It calls the same [`Outboxes::run`] as everybody else, at once again while more is due, otherwise after its interval.
//! While the database fails it waits longer and longer, and says so once when it begins and once when it is over. Each
//! outbox has a timer of its own, so that one that is in trouble holds up no other.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, SETTLE_MARGIN};
use crate::handler::Registry;
use crate::processor::{Outboxes, Processor, RunError, RunRequest};
use crate::run::{RunReport, Trigger};

const USUAL_RUNTIME: Duration = Duration::from_secs(50);
const FIRST_BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

/// Runs until `shutdown` is cancelled, with `interval` between two runs that found nothing more to do. A run that is
/// under way then ends as [`Outboxes::begin_shutdown`] tells it to.
pub async fn run(outboxes: impl Into<Outboxes>, interval: Duration, shutdown: CancellationToken) {
    let outboxes = outboxes.into();
    join_all(outboxes.iter().map(|processor| poll(processor, interval, &shutdown))).await;
}

async fn poll(processor: &Processor, interval: Duration, shutdown: &CancellationToken) {
    let request = RunRequest { budget: budget(processor.registry()), ..RunRequest::new(Trigger::Poller) };
    let outbox = processor.outbox();
    let mut trouble = Trouble::default();
    let mut unrouted = Unrouted::default();
    while !shutdown.is_cancelled() {
        let pause = match processor.run(request.clone()).await {
            Ok(report) => {
                trouble.over(outbox);
                unrouted.tell(outbox, &report);
                after(&report, interval)
            }
            Err(RunError::ShuttingDown) => return,
            Err(error) => trouble.pause(outbox, &error),
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Long enough for every route, however slow: there is no scheduler that could ask for a longer run.
fn budget(registry: &Registry) -> Budget {
    let slowest = registry.routes().iter().map(|route| route.timeout).max().unwrap_or_default();
    let max_runtime = USUAL_RUNTIME.max(slowest.saturating_add(SETTLE_MARGIN * 2));
    Budget { batch_size: Budget::MAX_BATCH_SIZE, max_runtime, ..Budget::default() }
}

/// Nothing claimed means that going on at once would find nothing either, whatever the report says.
fn after(report: &RunReport, interval: Duration) -> Duration {
    if report.more && report.claimed > 0 { Duration::ZERO } else { interval }
}

/// Runs that have failed one after the other.
#[derive(Debug, Default)]
struct Trouble {
    back_off: Option<Duration>,
}

impl Trouble {
    fn pause(&mut self, outbox: &str, error: &RunError) -> Duration {
        if self.back_off.is_none() {
            tracing::error!(outbox, error = %error, "the poller's run failed; it tries again with growing pauses");
        }
        let pause = self.back_off.map_or(FIRST_BACK_OFF, |last| (last * 2).min(LONGEST_BACK_OFF));
        self.back_off = Some(pause);
        pause
    }

    fn over(&mut self, outbox: &str) {
        if self.back_off.take().is_some() {
            tracing::info!(outbox, "the poller's runs succeed again");
        }
    }
}

/// Types that wait because no route takes them. Nobody reads the poller's reports, so the log names them.
#[derive(Debug, Default)]
struct Unrouted {
    told: BTreeSet<String>,
}

impl Unrouted {
    /// Names those that were not there at the last run; says whether there were any.
    fn tell(&mut self, outbox: &str, report: &RunReport) -> bool {
        let waiting: BTreeSet<String> = report.unrouted_types.iter().cloned().collect();
        let new: Vec<&str> = waiting.difference(&self.told).map(String::as_str).collect();
        let any = !new.is_empty();
        if any {
            tracing::warn!(outbox, types = new.join(", "), "events wait: no route takes their types");
        }
        self.told = waiting;
        any
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn pauses_grow_to_half_a_minute_and_start_anew_after_a_success() {
        let mut trouble = Trouble::default();
        let error = RunError::ShuttingDown;
        let pauses: Vec<u64> = (0..7).map(|_| trouble.pause("default", &error).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        trouble.over("default");
        assert_eq!(trouble.pause("default", &error), FIRST_BACK_OFF);
    }

    #[test]
    fn types_without_a_route_are_named_when_they_begin_to_wait_and_not_in_every_run() {
        let report = |types: &[&str]| RunReport {
            unrouted_types: types.iter().map(|&name| name.to_owned()).collect(),
            ..RunReport::begun(Uuid::nil())
        };
        let mut unrouted = Unrouted::default();
        let told: Vec<bool> =
            [&["a"][..], &["a"], &["b", "a"], &[], &["a"]].map(|types| unrouted.tell("default", &report(types))).into();
        assert_eq!(told, [true, false, true, false, true]);
    }

    #[test]
    fn it_goes_on_at_once_only_when_the_last_run_got_something() {
        let interval = Duration::from_secs(1);
        let report = |more, claimed| RunReport { more, claimed, ..RunReport::begun(Uuid::nil()) };
        assert_eq!(after(&report(true, 1), interval), Duration::ZERO);
        assert_eq!(after(&report(true, 0), interval), interval);
        assert_eq!(after(&report(false, 1), interval), interval);
    }
}
