//! One run over several outboxes: its parts side by side, one batch, one budget, one report.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::batch::Share;
use super::run::{Ended, Run, check_budget, lost_after, shortest_timeout};
use super::spans::{ALL, RunSpan};
use super::{Processor, RunError, RunRequest};
use crate::budget::Countdown;
use crate::run::{RunReport, RunState, StopReason};

/// A run that has not begun yet.
pub(super) struct Together {
    /// Keeps the report.
    home: Processor,
    parts: Vec<Run>,
    request: RunRequest,
    countdown: Countdown,
    run_id: Uuid,
    span: Option<RunSpan>,
}

impl Together {
    /// Judges the budget by all the routes.
    pub(super) fn new(processors: &[Processor], request: RunRequest) -> Result<Self, RunError> {
        let Some(home) = processors.first().cloned() else { return Err(RunError::ShuttingDown) };
        if home.is_shutting_down() {
            return Err(RunError::ShuttingDown);
        }
        let countdown = Countdown::start(request.budget);
        let timeouts = processors.iter().filter_map(|processor| shortest_timeout(&processor.shared, &request));
        check_budget(&request, &countdown, timeouts.min())?;
        let run_id = Uuid::now_v7();
        // A batch too small for all begins with another outbox each time.
        let first = fastrand::usize(..processors.len());
        let shares = Share::divide(request.budget.batch_size, processors.len(), first);
        let span = RunSpan::begin(&home.shared, &Arc::from(ALL));
        let part = |(processor, share): (&Processor, Share)| {
            Run::part(Arc::clone(&processor.shared), request.clone(), countdown, run_id, share, span.clone())
        };
        let parts = processors.iter().zip(shares).map(part).collect();
        Ok(Self { home, parts, request, countdown, run_id, span })
    }

    /// Keeps the run in the database from now on, so that anybody can ask for it.
    pub(super) async fn announce(&mut self) -> Result<RunReport, RunError> {
        let report = RunReport::begun(self.run_id);
        let saved = self.home.store().save_run(&report, self.request.trigger, lost_after(&self.countdown)).await;
        saved.map_err(|source| RunError::Store { source, partial: None })?;
        Ok(report)
    }

    /// Does the run. It is to be driven to its end on a task of its own.
    pub(super) async fn drive(self, hung_up: CancellationToken) -> Result<RunReport, RunError> {
        let tasks = &self.home.shared.tasks;
        let begun: Vec<JoinHandle<Ended>> =
            self.parts.into_iter().map(|part| tasks.spawn(part.drive_part(hung_up.clone()))).collect();
        let report = RunReport {
            state: RunState::Finished,
            stop_reason: Some(StopReason::Drained),
            ..RunReport::begun(self.run_id)
        };
        let (trigger, countdown, span) = (self.request.trigger, self.countdown, self.span);
        let mut whole = Ended { report, failure: None, trigger, countdown, span };
        let mut panicked = None;
        for part in begun {
            match part.await {
                Ok(ended) => whole.merge(ended),
                Err(error) => {
                    whole.report.stop_reason = Some(StopReason::Error);
                    panicked.get_or_insert(RunError::Panicked { reason: error.to_string() });
                }
            }
        }
        let concluded = whole.conclude(self.home.store()).await;
        panicked.map_or(concluded, Err)
    }
}
