//! Runs: what each bounded pass reported, for a week. Idle ones are thinned to one a minute.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::SqliteStore;
use super::error::{from_sqlx, unreadable};
use super::row::{get, instant};
use crate::run::{RunRecord, RunReport, RunState, Trigger};
use crate::store::{RunPage, StoreError, micros};

/// ?1 id, ?2 trigger, ?3 state, ?4 report, ?5 how long the run has taken, ?6 after how long it is lost, ?7 idle?
/// A report that comes late does not undo the final one.
pub(super) const SAVE: &str = "-- outbox: save a run
INSERT INTO {runs} (run_id, \"trigger\", state, report, started_at, finished_at, lost_after, idle)
SELECT ?1, ?2, ?3, ?4, {now} - ?5, CASE WHEN ?3 = 'finished' THEN {now} END, {now} + ?6, ?7
WHERE NOT (?7 AND ?3 = 'finished')
    OR EXISTS (SELECT 1 FROM {runs} AS known WHERE known.run_id = ?1)
    OR NOT EXISTS (
        SELECT 1
        FROM {runs} AS idle
        WHERE idle.idle = 1 AND idle.state = 'finished' AND idle.started_at > {now} - 60000000
    )
ON CONFLICT (run_id) DO UPDATE
SET state = excluded.state,
    report = excluded.report,
    finished_at = excluded.finished_at,
    idle = excluded.idle
WHERE {runs}.state = 'running' OR excluded.state = 'finished'";

/// Deletes in bounded steps.
pub(super) const FORGET: &str = "-- outbox: forget old runs
DELETE FROM {runs}
WHERE rowid IN (
    SELECT old.rowid
    FROM {runs} AS old
    WHERE old.started_at < {now} - 604800000000
    ORDER BY old.started_at
    LIMIT 1000
)";

/// ?1 id.
pub(super) const RUN: &str = "-- outbox: run
SELECT report, \"trigger\", started_at, state = 'running' AND lost_after < {now}
FROM {runs}
WHERE run_id = ?1";

/// ?1 and ?2 the run behind which, ?3 runs at most.
pub(super) const RUNS: &str = "-- outbox: runs
SELECT report, \"trigger\", started_at, state = 'running' AND lost_after < {now}
FROM {runs}
WHERE (started_at, run_id) < (?1, ?2)
ORDER BY started_at DESC, run_id DESC
LIMIT ?3";

impl SqliteStore {
    pub(super) async fn write_run(
        &self,
        report: &RunReport,
        trigger: Trigger,
        lost_after: Duration,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(report).map_err(|error| StoreError::Internal {
            reason: "a report cannot be written as JSON".to_owned(),
            source: Some(Box::new(error)),
        })?;
        let state = match report.state {
            RunState::Finished => "finished",
            RunState::Running | RunState::Lost => "running",
        };
        let statements = Arc::clone(&self.statements);
        let save = sqlx::query(statements.run_save.clone())
            .bind(report.run_id.to_string())
            .bind(trigger.as_str())
            .bind(state)
            .bind(text)
            .bind(micros(Duration::from_millis(report.duration_ms)))
            .bind(micros(lost_after))
            .bind(report.is_idle());
        self.write(move |connection| {
            Box::pin(async move {
                save.execute(&mut *connection).await.map_err(from_sqlx)?;
                sqlx::query(statements.run_forget.clone()).execute(connection).await.map_err(from_sqlx)?;
                Ok(())
            })
        })
        .await
    }

    pub(super) async fn read_run(&self, run_id: Uuid) -> Result<Option<RunRecord>, StoreError> {
        let query = sqlx::query(self.statements.run.clone()).bind(run_id.to_string());
        self.read(move |connection| {
            Box::pin(async move {
                query.fetch_optional(connection).await.map_err(from_sqlx)?.as_ref().map(record).transpose()
            })
        })
        .await
    }

    pub(super) async fn read_runs(&self, page: RunPage) -> Result<Vec<RunRecord>, StoreError> {
        let (before, before_id) =
            page.after.map_or((i64::MAX, String::new()), |(at, id)| (at.as_micros(), id.to_string()));
        let query = sqlx::query(self.statements.runs.clone()).bind(before).bind(before_id).bind(page.limit);
        self.read(move |connection| {
            Box::pin(async move { query.fetch_all(connection).await.map_err(from_sqlx)?.iter().map(record).collect() })
        })
        .await
    }
}

fn record(row: &SqliteRow) -> Result<RunRecord, StoreError> {
    let mut report: RunReport = serde_json::from_str(get(row, 0)?).map_err(|_| unreadable("report"))?;
    let trigger = match get(row, 1)? {
        "http" => Trigger::Http,
        "cli" => Trigger::Cli,
        "poller" => Trigger::Poller,
        _ => return Err(unreadable("trigger")),
    };
    if get(row, 3)? {
        report.state = RunState::Lost;
    }
    Ok(RunRecord { report, started_at: instant(row, 2)?, trigger })
}
