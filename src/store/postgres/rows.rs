//! From rows to values.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::event::{Event, Status};
use crate::lease::{ClaimedEvent, Lease};
use crate::run::{RunRecord, RunReport, RunState, Trigger};
use crate::store::{Action, ActionKind, Attempt, Position};
use crate::timestamp::Timestamp;

/// An instant as the driver has it.
pub(super) fn date_time(at: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// An instant as outboxd has it.
pub(super) fn timestamp(at: OffsetDateTime) -> Timestamp {
    Timestamp::from_micros(at.unix_timestamp() * 1_000_000 + i64::from(at.microsecond()))
}

/// Before every other place in a lane.
pub(super) fn front() -> Position {
    Position { available_at: Timestamp::from_micros(i64::MIN), id: Uuid::nil().into() }
}

/// An instant, by the column's name.
pub(super) fn instant(row: &PgRow, column: &str) -> Result<Timestamp, sqlx::Error> {
    row.try_get::<OffsetDateTime, _>(column).map(timestamp)
}

/// An instant that may be missing, by the column's name.
pub(super) fn optional_instant(row: &PgRow, column: &str) -> Result<Option<Timestamp>, sqlx::Error> {
    Ok(row.try_get::<Option<OffsetDateTime>, _>(column)?.map(timestamp))
}

/// Reads an event, without payload.
pub(super) fn event(row: &PgRow) -> Result<Event, sqlx::Error> {
    let status: String = row.try_get("status")?;
    Ok(Event {
        id: row.try_get::<Uuid, _>("id")?.into(),
        event_type: row.try_get("event_type")?,
        subject: row.try_get("subject")?,
        payload: None,
        headers: headers(row.try_get("headers")?),
        idempotency_key: row.try_get("idempotency_key")?,
        status: status.parse::<Status>().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        attempts: row.try_get("attempts")?,
        max_attempts: row.try_get("max_attempts")?,
        requeues: row.try_get("requeues")?,
        available_at: instant(row, "available_at")?,
        locked_at: optional_instant(row, "locked_at")?,
        lease_until: optional_instant(row, "lease_until")?,
        claim_no: row.try_get("claim_no")?,
        deferred_since: optional_instant(row, "deferred_since")?,
        created_at: instant(row, "created_at")?,
        processed_at: optional_instant(row, "processed_at")?,
        dead_at: optional_instant(row, "dead_at")?,
        last_error: row.try_get("last_error")?,
    })
}

/// Reads an event with the payload that the statement gave.
pub(super) fn event_with_payload(row: &PgRow) -> Result<Event, sqlx::Error> {
    Ok(Event { payload: row.try_get("payload")?, ..event(row)? })
}

/// Reads a claimed event. By the columns' places in what a claim returns: a name would be looked up in each row, and
/// this is done for every event.
pub(super) fn claimed(row: &PgRow) -> Result<ClaimedEvent, sqlx::Error> {
    let deferred_ms: Option<i64> = row.try_get(11)?;
    Ok(ClaimedEvent {
        lease: Lease { event_id: row.try_get::<Uuid, _>(0)?.into(), claim_no: row.try_get(1)? },
        event_type: row.try_get(2)?,
        subject: row.try_get(3)?,
        payload: row.try_get(4)?,
        payload_bytes: i64::from(row.try_get::<i32, _>(5)?),
        headers: headers(row.try_get(6)?),
        attempts: row.try_get(7)?,
        max_attempts: row.try_get(8)?,
        created_at: row.try_get::<OffsetDateTime, _>(9).map(timestamp)?,
        available_at: row.try_get::<OffsetDateTime, _>(10).map(timestamp)?,
        waited: waited(row.try_get(12)?),
        deferred_for: deferred_ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
    })
}

/// How long an event was due, in microseconds. One that was claimed by a clock that has gone back has not waited.
pub(super) fn waited(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Reads a lease.
pub(super) fn lease(row: &PgRow) -> Result<Lease, sqlx::Error> {
    Ok(Lease { event_id: row.try_get::<Uuid, _>("id")?.into(), claim_no: row.try_get("claim_no")? })
}

/// Reads a line of the attempt log.
pub(super) fn attempt(row: &PgRow) -> Result<Attempt, sqlx::Error> {
    Ok(Attempt {
        number: row.try_get("number")?,
        claim_no: row.try_get("claim_no")?,
        started_at: instant(row, "started_at")?,
        duration_ms: row.try_get("duration_ms")?,
        outcome: row.try_get("outcome")?,
        status_code: row.try_get("status_code")?,
        error: row.try_get("error")?,
        response: row.try_get("response")?,
    })
}

/// Reads a line of the log of actions.
pub(super) fn action(row: &PgRow) -> Result<Action, sqlx::Error> {
    let kind: &str = row.try_get("action")?;
    Ok(Action {
        at: instant(row, "at")?,
        kind: kind.parse::<ActionKind>().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        actor: row.try_get("actor")?,
        note: row.try_get("note")?,
    })
}

/// Reads a run.
pub(super) fn run(row: &PgRow) -> Result<RunRecord, sqlx::Error> {
    let decode = |error: serde_json::Error| sqlx::Error::Decode(Box::new(error));
    let mut report: RunReport = serde_json::from_str(row.try_get("report")?).map_err(decode)?;
    if row.try_get("lost")? {
        report.state = RunState::Lost;
    }
    let trigger: String = row.try_get("trigger")?;
    let trigger: Trigger = serde_json::from_value(Value::String(trigger)).map_err(decode)?;
    Ok(RunRecord { report, started_at: instant(row, "started_at")?, trigger })
}

/// Headers are an object of strings. A value of another kind, which only a plain INSERT can bring in, becomes a header
/// without a name: no header check lets it pass, so that this event fails alone.
fn headers(text: &str) -> BTreeMap<String, String> {
    if text == "{}" {
        return BTreeMap::new();
    }
    let Ok(Value::Object(values)) = serde_json::from_str(text) else {
        return BTreeMap::from([(String::new(), String::new())]);
    };
    let named = |(name, value)| match value {
        Value::String(value) => (name, value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            (String::new(), String::new())
        }
    };
    values.into_iter().map(named).collect()
}
