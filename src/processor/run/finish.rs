//! The end of a run: why it stopped, what is left, and the one line and one record that say so.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::Run;
use crate::processor::RunError;
use crate::processor::lanes::Lane;
use crate::processor::plan::{all_fitting, is_wanted};
use crate::processor::sweep::leave_behind;
use crate::run::{RunReport, RunState, StopReason, Trigger};
use crate::store::{Claim, Peek, StoreError, SubjectClaim};

/// Types that a report names of each kind.
const MAX_TYPES: usize = 100;
/// How long recording a run may take, and how long where the database has failed already.
const PATIENCE: Duration = Duration::from_secs(5);
const SHORT_PATIENCE: Duration = Duration::from_millis(200);

impl Run {
    /// Completes the report, keeps it and logs it.
    pub(super) async fn finish(mut self) -> Result<RunReport, RunError> {
        self.hand_on_sweep();
        let left = self.eligibility();
        let reason = self.stop_reason(!left.too_late.is_empty());
        let unfit = left.unfit.into_iter().chain(left.too_late);
        self.report.unfit_types = unfit.take(MAX_TYPES).collect();
        self.report.unrouted_types = self.unrouted_types();
        if self.failure.is_none() {
            match self.peek(reason).await {
                Ok(peek) => {
                    self.report.more = peek.claimable && reason != StopReason::Drained;
                    self.report.next_due_at = peek.next_due_at;
                }
                Err(error) => self.failure = Some(error),
            }
        }
        self.report.state = RunState::Finished;
        self.report.stop_reason = Some(if self.failure.is_some() { StopReason::Error } else { reason });
        self.report.duration_ms = u64::try_from(self.countdown.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.log();
        self.record().await;
        match self.failure {
            None => Ok(self.report),
            Some(source) => {
                let partial = (self.report.claimed > 0).then(|| Box::new(self.report));
                Err(RunError::Store { source, partial })
            }
        }
    }

    /// A sweep that is still under way goes on without the run, for those that come after it; what an earlier run's took
    /// back is this one's to report.
    fn hand_on_sweep(&mut self) {
        if let Some(sweep) = self.sweeping.take() {
            leave_behind(Arc::clone(&self.shared), sweep);
        }
        let left_behind = self.shared.left_behind().take();
        self.note_reaped(left_behind);
    }

    /// Keeps the report. A run that could not be recorded has still done its work, so where the database has failed
    /// already it does not keep its caller waiting.
    async fn record(&mut self) {
        let patience = if self.failure.is_some() { SHORT_PATIENCE } else { PATIENCE };
        let run_id = self.report.run_id;
        match timeout(patience, self.save()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, %run_id, "the run could not be recorded"),
            Err(_) => tracing::warn!(%run_id, "the run could not be recorded in time"),
        }
    }

    fn unrouted_types(&self) -> Vec<String> {
        let registry = &self.shared.registry;
        let unrouted = self.types.iter().filter(|event_type| registry.route_for(event_type).is_none());
        unrouted.filter(|event_type| is_wanted(&self.request, event_type)).take(MAX_TYPES).cloned().collect()
    }

    /// What the same call would find now. A run that found nothing to do knows it from its sweep.
    async fn peek(&mut self, reason: StopReason) -> Result<Peek, StoreError> {
        let shared = &self.shared;
        if self.report.is_idle() && reason == StopReason::Drained && self.request.subject.is_none() {
            let lanes = shared.lanes();
            let is_served =
                |event_type: &str, lane: &Lane| lane.route.is_some() && is_wanted(&self.request, event_type);
            let wanted = lanes.iter().filter(|(event_type, lane)| is_served(event_type, lane));
            return Ok(Peek { claimable: false, next_due_at: wanted.filter_map(|(_, lane)| lane.next_due_at).min() });
        }
        let lanes = all_fitting(&shared.lanes(), &self.request, &self.countdown);
        if lanes.is_empty() {
            return Ok(Peek::default());
        }
        let subject = self.request.subject.clone().map(|subject| SubjectClaim { subject, limit: 1 });
        shared.store.peek(&Claim { lanes, subject }).await
    }

    fn log(&self) {
        let report = &self.report;
        let error = self.failure.as_ref().map(ToString::to_string);
        let reason = report.stop_reason.map_or("", StopReason::as_str);
        // The poller runs every second: its idle runs would be all that a log holds.
        if report.is_idle() && error.is_none() && self.request.trigger == Trigger::Poller {
            tracing::debug!(run_id = %report.run_id, stop_reason = reason, "a run found nothing to do");
            return;
        }
        tracing::info!(
            run_id = %report.run_id,
            trigger = self.request.trigger.as_str(),
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
            duration_ms = report.duration_ms,
            error,
            "a run has ended"
        );
    }
}
