//! The end of a run: why it stopped and what is left; and the deletion of what is past its retention.

use std::sync::Arc;

use super::Run;
use super::ended::{Ended, MAX_TYPES};
use crate::metrics;
use crate::processor::cleaning::clean_after_run;
use crate::processor::lanes::Lane;
use crate::processor::plan::{all_fitting, is_wanted};
use crate::processor::sweep::leave_behind;
use crate::processor::tally::write_down;
use crate::run::{RunState, StopReason};
use crate::store::{Claim, Peek, StoreError, SubjectClaim};

impl Run {
    /// Completes the report.
    pub(super) async fn finish(mut self) -> Ended {
        self.hand_on_sweep();
        write_down(&self.shared);
        // Where nobody scrapes, durations would pile up.
        metrics::exporter::upkeep();
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
        if self.failure.is_none() && !self.stopping {
            self.report.purged = clean_after_run(&self.shared, &self.countdown).await;
        }
        self.report.state = RunState::Finished;
        self.report.stop_reason = Some(if self.failure.is_some() { StopReason::Error } else { reason });
        self.report.duration_ms = u64::try_from(self.countdown.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (trigger, countdown) = (self.request.trigger, self.countdown);
        Ended { report: self.report, failure: self.failure, trigger, countdown, span: self.span }
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
}
