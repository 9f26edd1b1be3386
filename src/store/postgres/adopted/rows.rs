//! From an adopted table's rows to values.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;

use crate::event::{Event, EventId, Status};
use crate::lease::{ClaimedEvent, Lease};
use crate::store::postgres::rows::{optional_instant, timestamp, waited};
use crate::timestamp::Timestamp;

/// An id.
pub(super) fn id(row: &PgRow) -> Result<EventId, sqlx::Error> {
    row.try_get::<&str, _>("id").map(EventId::from_text)
}

/// A lease.
pub(super) fn lease(row: &PgRow) -> Result<Lease, sqlx::Error> {
    Ok(Lease { event_id: id(row)?, claim_no: row.try_get("claim_no")? })
}

/// A status by its word; labels that the description does not name have none.
pub(super) fn status(row: &PgRow) -> Result<Status, sqlx::Error> {
    Ok(row.try_get::<&str, _>("status")?.parse().unwrap_or(Status::Unknown))
}

/// A payload that is text, if it is.
pub(super) fn text(bytes: Option<Vec<u8>>) -> Option<String> {
    bytes.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// A claimed event, by the columns' places.
pub(super) fn claimed(row: &PgRow) -> Result<ClaimedEvent, sqlx::Error> {
    let instant = |at: usize| Ok::<_, sqlx::Error>(row.try_get::<Option<OffsetDateTime>, _>(at)?.map(timestamp));
    let available_at = instant(10)?.unwrap_or(Timestamp::from_micros(0));
    Ok(ClaimedEvent {
        lease: Lease { event_id: EventId::from_text(row.try_get(0)?), claim_no: row.try_get(1)? },
        event_type: row.try_get(2)?,
        subject: row.try_get(3)?,
        payload: text(row.try_get(4)?),
        payload_bytes: i64::from(row.try_get::<i32, _>(5)?),
        headers: headers(row.try_get(6)?),
        attempts: row.try_get(7)?,
        max_attempts: row.try_get(8)?,
        created_at: instant(9)?.unwrap_or(available_at),
        available_at,
        waited: waited(row.try_get::<Option<i64>, _>(11)?.unwrap_or(0)),
        deferred_for: None,
    })
}

/// An event without its payload.
pub(super) fn event(row: &PgRow) -> Result<Event, sqlx::Error> {
    let status = status(row)?;
    let available_at = optional_instant(row, "available_at")?.unwrap_or(Timestamp::from_micros(0));
    Ok(Event {
        id: id(row)?,
        event_type: row.try_get("event_type")?,
        subject: row.try_get("subject")?,
        payload: None,
        headers: headers(row.try_get("headers")?),
        idempotency_key: None,
        status,
        attempts: row.try_get("attempts")?,
        max_attempts: row.try_get("max_attempts")?,
        requeues: 0,
        available_at,
        locked_at: optional_instant(row, "locked_at")?,
        lease_until: None,
        claim_no: row.try_get("claim_no")?,
        deferred_since: None,
        created_at: optional_instant(row, "created_at")?.unwrap_or(available_at),
        processed_at: optional_instant(row, "processed_at")?,
        dead_at: if status == Status::DeadLetter { optional_instant(row, "dead_at")? } else { None },
        last_error: row.try_get("last_error")?,
    })
}

/// An event with the payload that the statement gave.
pub(super) fn event_with_payload(row: &PgRow) -> Result<Event, sqlx::Error> {
    Ok(Event { payload: text(row.try_get("payload")?), ..event(row)? })
}

/// Headers, as far as they are strings: an application's column may hold anything.
fn headers(text: Option<&str>) -> BTreeMap<String, String> {
    let values: BTreeMap<String, serde_json::Value> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let strings = values.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
    strings.collect()
}
