//! What operators and housekeeping do: cancel, requeue, discard, purge, and the record of runs.

use std::time::Duration;

use sqlx::Postgres;
use sqlx::Row;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query;
use uuid::Uuid;

use super::call::Caller;
use super::rows::{date_time, event, run as read_run};
use super::statements::Statements;
use crate::event::{EventId, Status};
use crate::run::{RunRecord, RunReport, RunState, Trigger};
use crate::store::{Actor, BulkChange, RequeueChange, RunPage, StoreError, Transition, micros};
use crate::timestamp::Timestamp;

/// How often a change is tried whose event keeps coming back in between.
const TRIES: u32 = 5;

pub(super) async fn cancel(caller: &Caller, id: Uuid, reason: &str, by: &Actor) -> Result<Transition, StoreError> {
    caller
        .call((id, reason.to_owned(), by.clone()), |statements, (id, reason, by), connection| {
            Box::pin(async move {
                let change = || statements.cancel().bind(id).bind(reason).bind(&by.name).bind(&by.note);
                transition(statements, *id, Status::Pending, change, connection).await
            })
        })
        .await
}

pub(super) async fn requeue(
    caller: &Caller,
    id: Uuid,
    change: &RequeueChange,
    by: &Actor,
) -> Result<Transition, StoreError> {
    caller
        .call((id, *change, by.clone()), |statements, (id, change, by), connection| {
            Box::pin(async move {
                let query = || statements.requeue().bind(id).bind(micros(change.delay)).bind(change.max_attempts);
                let change = || query().bind(&by.name).bind(&by.note);
                transition(statements, *id, Status::DeadLetter, change, connection).await
            })
        })
        .await
}

pub(super) async fn discard(caller: &Caller, id: Uuid, reason: &str, by: &Actor) -> Result<Transition, StoreError> {
    caller
        .call((id, reason.to_owned(), by.clone()), |statements, (id, reason, by), connection| {
            Box::pin(async move {
                let change = || statements.discard().bind(id).bind(reason).bind(&by.name).bind(&by.note);
                transition(statements, *id, Status::DeadLetter, change, connection).await
            })
        })
        .await
}

pub(super) async fn change_dead_letters(
    caller: &Caller,
    ids: Vec<Uuid>,
    change: &BulkChange,
    by: &Actor,
) -> Result<Vec<EventId>, StoreError> {
    caller
        .call((ids, change.clone(), by.clone()), |statements, (ids, change, by), connection| {
            Box::pin(async move {
                let query = match change {
                    BulkChange::Requeue { spread } => statements.requeue_many().bind(ids).bind(micros(*spread)),
                    BulkChange::Discard { reason } => statements.discard_many().bind(ids).bind(reason),
                };
                let rows = query.bind(&by.name).bind(&by.note).fetch_all(connection).await?;
                rows.iter().map(|row| row.try_get(0).map(EventId::Uuid)).collect()
            })
        })
        .await
}

/// Applies the guarded change; when it found nothing to change, says what is there instead. An event that has come back
/// to the state `from` between the two questions is tried again: refusing it would contradict what is shown.
async fn transition<'q>(
    statements: &'q Statements,
    id: Uuid,
    from: Status,
    change: impl Fn() -> Query<'q, Postgres, PgArguments>,
    connection: &mut PgConnection,
) -> Result<Transition, sqlx::Error> {
    let mut tries = 1;
    loop {
        if let Some(row) = change().fetch_optional(&mut *connection).await? {
            return Ok(Transition::Applied(Box::new(event(&row)?)));
        }
        let row = statements.event().bind(id).bind(false).fetch_optional(&mut *connection).await?;
        let Some(row) = row else { return Ok(Transition::Absent) };
        let there = event(&row)?;
        if there.status != from || tries == TRIES {
            return Ok(Transition::Refused(Box::new(there)));
        }
        tries += 1;
    }
}

pub(super) async fn purge(
    caller: &Caller,
    completed: Duration,
    skipped: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    caller
        .call((micros(completed), micros(skipped), i64::from(limit)), |statements, arguments, connection| {
            Box::pin(async move {
                let (completed, skipped, limit) = arguments;
                let query = statements.purge().bind(completed).bind(skipped).bind(limit);
                let gone: i64 = query.fetch_one(connection).await?.try_get(0)?;
                Ok(u64::try_from(gone).unwrap_or(0))
            })
        })
        .await
}

pub(super) async fn save_run(
    caller: &Caller,
    report: &RunReport,
    trigger: Trigger,
    lost_after: Duration,
) -> Result<(), StoreError> {
    caller
        .call((report.clone(), trigger, lost_after), |statements, (report, trigger, lost_after), connection| {
            Box::pin(async move {
                let ms = |ms: u128| i64::try_from(ms).unwrap_or(i64::MAX);
                statements
                    .save_run()
                    .bind(report.run_id)
                    .bind(trigger.as_str())
                    .bind(serde_json::to_string(report).map_err(|error| sqlx::Error::Encode(Box::new(error)))?)
                    .bind(report.state != RunState::Running)
                    .bind(report.is_idle())
                    .bind(ms(u128::from(report.duration_ms)))
                    .bind(ms(lost_after.as_millis()))
                    .execute(connection)
                    .await?;
                Ok(())
            })
        })
        .await
}

pub(super) async fn run(caller: &Caller, run_id: Uuid) -> Result<Option<RunRecord>, StoreError> {
    caller
        .read(run_id, |statements, run_id, connection| {
            Box::pin(async move {
                let query = statements.run().bind(run_id);
                query.fetch_optional(connection).await?.as_ref().map(read_run).transpose()
            })
        })
        .await
}

pub(super) async fn runs(caller: &Caller, page: &RunPage) -> Result<Vec<RunRecord>, StoreError> {
    caller
        .read(*page, |statements, page, connection| {
            Box::pin(async move {
                let newest = (Timestamp::from_micros(i64::MAX), Uuid::max());
                let (at, id) = page.after.unwrap_or(newest);
                let query = statements.run_page().bind(date_time(at)).bind(id).bind(i64::from(page.limit));
                query.fetch_all(connection).await?.iter().map(read_run).collect()
            })
        })
        .await
}
