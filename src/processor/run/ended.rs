//! What is left of a run when it has ended: its report, to be merged with those of other outboxes, logged and kept.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::LOST_MARGIN;
use crate::budget::Countdown;
use crate::metrics;
use crate::processor::RunError;
use crate::processor::spans::RunSpan;
use crate::run::{RunReport, StopReason, Trigger};
use crate::store::{Store, StoreError};

/// Types that a report names of each kind.
pub(super) const MAX_TYPES: usize = 100;
/// How long recording a run may take, and how long where the database has failed already.
const PATIENCE: Duration = Duration::from_secs(5);
const SHORT_PATIENCE: Duration = Duration::from_millis(200);

/// A run that has ended.
pub(in crate::processor) struct Ended {
    pub(in crate::processor) report: RunReport,
    pub(in crate::processor) failure: Option<StoreError>,
    pub(in crate::processor) trigger: Trigger,
    pub(in crate::processor) countdown: Countdown,
    /// The span of the whole run.
    pub(in crate::processor) span: Option<RunSpan>,
}

impl Ended {
    /// Takes over what the same run did in another outbox.
    pub(in crate::processor) fn merge(&mut self, other: Self) {
        let (report, more) = (&mut self.report, other.report);
        report.stop_reason = graver(report.stop_reason, more.stop_reason);
        report.more |= more.more;
        report.next_due_at = [report.next_due_at, more.next_due_at].into_iter().flatten().min();
        report.claimed += more.claimed;
        report.completed += more.completed;
        report.retried += more.retried;
        report.deferred += more.deferred;
        report.skipped += more.skipped;
        report.dead_lettered += more.dead_lettered;
        report.accepted += more.accepted;
        report.lease_lost += more.lease_lost;
        report.released += more.released;
        report.reaped += more.reaped;
        report.purged += more.purged;
        more.dead_letter_ids.into_iter().for_each(|id| report.note_dead_letter(id));
        merge_types(&mut report.unrouted_types, more.unrouted_types);
        merge_types(&mut report.unfit_types, more.unfit_types);
        report.duration_ms = report.duration_ms.max(more.duration_ms);
        self.failure = self.failure.take().or(other.failure);
    }

    /// Logs and keeps the report, and gives it to the caller.
    pub(in crate::processor) async fn conclude(mut self, store: &Arc<dyn Store>) -> Result<RunReport, RunError> {
        self.log();
        let took = Duration::from_millis(self.report.duration_ms);
        metrics::run_ended(self.trigger, self.report.stop_reason.unwrap_or(StopReason::Error), took);
        if let Some(span) = self.span.take() {
            span.ended(&self);
        }
        self.record(store.as_ref()).await;
        match self.failure {
            None => Ok(self.report),
            Some(source) => {
                let partial = (self.report.claimed > 0).then(|| Box::new(self.report));
                Err(RunError::Store { source, partial })
            }
        }
    }

    /// Keeps the report. A run that could not be recorded has still done its work, so where the database has failed
    /// already it does not keep its caller waiting.
    async fn record(&self, store: &dyn Store) {
        let patience = if self.failure.is_some() { SHORT_PATIENCE } else { PATIENCE };
        let run_id = self.report.run_id;
        match timeout(patience, store.save_run(&self.report, self.trigger, lost_after(&self.countdown))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, %run_id, "the run could not be recorded"),
            Err(_) => tracing::warn!(%run_id, "the run could not be recorded in time"),
        }
    }

    fn log(&self) {
        let report = &self.report;
        let error = self.failure.as_ref().map(ToString::to_string);
        let reason = report.stop_reason.map_or("", StopReason::as_str);
        // The poller runs every second: its idle runs would be all that a log holds.
        if report.is_idle() && error.is_none() && self.trigger == Trigger::Poller {
            tracing::debug!(run_id = %report.run_id, stop_reason = reason, "a run found nothing to do");
            return;
        }
        tracing::info!(
            run_id = %report.run_id,
            trigger = self.trigger.as_str(),
            stop_reason = reason,
            more = report.more,
            claimed = report.claimed,
            completed = report.completed,
            retried = report.retried,
            deferred = report.deferred,
            skipped = report.skipped,
            dead_lettered = report.dead_lettered,
            accepted = report.accepted,
            lease_lost = report.lease_lost,
            released = report.released,
            reaped = report.reaped,
            purged = report.purged,
            duration_ms = report.duration_ms,
            error,
            "a run has ended"
        );
    }
}

/// When a run counts as lost that has not reported by then.
pub(in crate::processor) fn lost_after(countdown: &Countdown) -> Duration {
    countdown.remaining() + LOST_MARGIN
}

fn merge_types(types: &mut Vec<String>, more: Vec<String>) {
    let all: BTreeSet<String> = mem::take(types).into_iter().chain(more).collect();
    types.extend(all.into_iter().take(MAX_TYPES));
}

/// Which of two reasons a caller has to know.
fn graver(one: Option<StopReason>, other: Option<StopReason>) -> Option<StopReason> {
    let gravity = |reason: &StopReason| match reason {
        StopReason::Drained => 0,
        StopReason::Budget => 1,
        StopReason::BatchSize => 2,
        StopReason::Shutdown => 3,
        StopReason::Error => 4,
    };
    [one, other].into_iter().flatten().max_by_key(gravity)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::budget::Budget;
    use crate::event::EventId;
    use crate::run::MAX_DEAD_LETTER_IDS;
    use crate::timestamp::Timestamp;

    fn ended(reason: StopReason, change: impl FnOnce(&mut RunReport)) -> Ended {
        let mut report = RunReport { stop_reason: Some(reason), ..RunReport::begun(Uuid::nil()) };
        change(&mut report);
        Ended {
            report,
            failure: None,
            trigger: Trigger::Cli,
            countdown: Countdown::start(Budget::default()),
            span: None,
        }
    }

    #[test]
    fn a_merged_report_is_the_sum_with_the_gravest_reason() {
        let mut first = ended(StopReason::Drained, |report| {
            report.claimed = 2;
            report.unrouted_types = vec!["a".to_owned(), "c".to_owned()];
            report.dead_letter_ids = vec![EventId::from_text("x"); MAX_DEAD_LETTER_IDS - 1];
            report.next_due_at = Some(Timestamp::from_micros(9));
        });
        first.merge(ended(StopReason::BatchSize, |report| {
            report.claimed = 3;
            report.more = true;
            report.unrouted_types = vec!["b".to_owned(), "c".to_owned()];
            report.dead_letter_ids = vec![EventId::from_text("y"); 2];
            report.next_due_at = Some(Timestamp::from_micros(5));
        }));
        first.merge(ended(StopReason::Budget, |_| {}));
        let report = first.report;
        assert_eq!((report.claimed, report.more, report.stop_reason), (5, true, Some(StopReason::BatchSize)));
        assert_eq!(report.unrouted_types, ["a", "b", "c"]);
        assert_eq!(report.dead_letter_ids.len(), MAX_DEAD_LETTER_IDS);
        assert_eq!(report.next_due_at, Some(Timestamp::from_micros(5)));
    }
}
