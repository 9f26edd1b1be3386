//! A run: one bounded pass over the due events, what set it going and what it reports.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::event::EventId;
use crate::timestamp::Timestamp;

/// Dead letters that a report names.
pub const MAX_DEAD_LETTER_IDS: usize = 100;

/// What set a run going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A request to `/v1/process`.
    Http,
    /// `outboxd process`, or a library user's call.
    Cli,
    /// The built-in timer.
    Poller,
}

impl Trigger {
    /// The word for it in SQL, JSON and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Cli => "cli",
            Self::Poller => "poller",
        }
    }
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Under way.
    Running,
    /// Ended, with a report.
    Finished,
    /// Its instance died: it never reported and its budget is long used up.
    Lost,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Nothing was claimable any more in the lanes that fit.
    Drained,
    /// As many events were claimed as the batch allowed.
    BatchSize,
    /// What is still due no longer fitted the remaining time.
    Budget,
    /// The instance is stopping, or the caller has hung up.
    Shutdown,
    /// The database failed.
    Error,
}

impl StopReason {
    /// The word for it in SQL, JSON and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drained => "drained",
            Self::BatchSize => "batch_size",
            Self::Budget => "budget",
            Self::Shutdown => "shutdown",
            Self::Error => "error",
        }
    }
}

/// What a run did. `claimed` is always the sum of completed, retried, deferred, skipped, `dead_lettered`, accepted,
/// `lease_lost` and released, once the run has finished. Reports are kept as JSON: a field that an older version did not
/// know is 0 or empty when its reports are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunReport {
    /// Names the run.
    pub run_id: Uuid,
    /// How far the run has come.
    pub state: RunState,
    /// Why it ended; null while it is running or when it was lost.
    pub stop_reason: Option<StopReason>,
    /// Whether the same call made again now would find something to claim.
    #[serde(default)]
    #[schema(required = true)]
    pub more: bool,
    /// When the next event of a routed type becomes due that is not due yet; null when none waits.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_due_at: Option<Timestamp>,
    /// Events claimed.
    #[serde(default)]
    #[schema(required = true)]
    pub claimed: u64,
    /// Events delivered.
    #[serde(default)]
    #[schema(required = true)]
    pub completed: u64,
    /// Attempts that failed and will be repeated.
    #[serde(default)]
    #[schema(required = true)]
    pub retried: u64,
    /// Events put off without spending an attempt.
    #[serde(default)]
    #[schema(required = true)]
    pub deferred: u64,
    /// Events skipped.
    #[serde(default)]
    #[schema(required = true)]
    pub skipped: u64,
    /// Claimed events that became dead letters.
    #[serde(default)]
    #[schema(required = true)]
    pub dead_lettered: u64,
    /// Events whose receiver will settle them itself.
    #[serde(default)]
    #[schema(required = true)]
    pub accepted: u64,
    /// Settlements that came too late and changed nothing.
    #[serde(default)]
    #[schema(required = true)]
    pub lease_lost: u64,
    /// Claims given back unused.
    #[serde(default)]
    #[schema(required = true)]
    pub released: u64,
    /// Expired leases taken back, whatever became of their events; these are not claimed thereby.
    #[serde(default)]
    #[schema(required = true)]
    pub reaped: u64,
    /// Completed and skipped events past their retention that were deleted at the run's end.
    #[serde(default)]
    pub purged: u64,
    /// At most 100 of the events that became dead letters in this run, reaped or handled.
    #[serde(default)]
    #[schema(value_type = Vec<String>, required = true)]
    pub dead_letter_ids: Vec<EventId>,
    /// Types with live events that no route takes.
    #[serde(default)]
    #[schema(required = true)]
    pub unrouted_types: Vec<String>,
    /// Types with due events whose handler's timeout does not fit the budget.
    #[serde(default)]
    #[schema(required = true)]
    pub unfit_types: Vec<String>,
    /// How long the run took.
    #[serde(default)]
    #[schema(required = true)]
    pub duration_ms: u64,
}

impl RunReport {
    /// The report of a run that has just begun.
    #[must_use]
    pub fn begun(run_id: Uuid) -> Self {
        Self {
            run_id,
            state: RunState::Running,
            stop_reason: None,
            more: false,
            next_due_at: None,
            claimed: 0,
            completed: 0,
            retried: 0,
            deferred: 0,
            skipped: 0,
            dead_lettered: 0,
            accepted: 0,
            lease_lost: 0,
            released: 0,
            reaped: 0,
            purged: 0,
            dead_letter_ids: Vec::new(),
            unrouted_types: Vec::new(),
            unfit_types: Vec::new(),
            duration_ms: 0,
        }
    }

    /// Whether the run changed nothing and nothing went wrong: of such runs only some are kept.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let failed = self.stop_reason == Some(StopReason::Error);
        self.claimed == 0 && self.reaped == 0 && self.purged == 0 && !failed
    }

    /// Remembers a dead letter, up to the cap.
    pub fn note_dead_letter(&mut self, event_id: EventId) {
        if self.dead_letter_ids.len() < MAX_DEAD_LETTER_IDS {
            self.dead_letter_ids.push(event_id);
        }
    }
}

/// A run as it is kept in the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunRecord {
    /// What the run did so far.
    #[serde(flatten)]
    pub report: RunReport,
    /// When it began, by the database's clock.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// What set it going.
    pub trigger: Trigger,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_version_that_knew_fewer_fields_is_read() {
        let kept = r#"{"run_id":"0197a0c2-7b1e-7c3a-9f00-0242ac120002","state":"finished","claimed":3}"#;
        let report: RunReport = serde_json::from_str(kept).unwrap();
        assert_eq!(report, RunReport { state: RunState::Finished, claimed: 3, ..RunReport::begun(report.run_id) });
    }
}
