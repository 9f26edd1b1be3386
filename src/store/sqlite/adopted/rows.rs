//! From an adopted table's rows to values. Texts are read as bytes, for an application's rows may hold any.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::event::{Event, EventId, Status};
use crate::lease::{ClaimedEvent, Lease};
use crate::timestamp::Timestamp;

/// Text; what is not UTF-8 is replaced.
pub(super) fn text(row: &SqliteRow, at: usize) -> Result<Option<String>, sqlx::Error> {
    let bytes: Option<Vec<u8>> = row.try_get(at)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// An id.
pub(super) fn id(row: &SqliteRow, at: usize) -> Result<EventId, sqlx::Error> {
    Ok(EventId::from_text(&text(row, at)?.unwrap_or_default()))
}

/// A status by its word; labels that the description does not name have none.
pub(super) fn status(row: &SqliteRow, at: usize) -> Result<Status, sqlx::Error> {
    Ok(row.try_get::<&str, _>(at)?.parse().unwrap_or(Status::Unknown))
}

/// An instant, if the row has one.
pub(super) fn instant(row: &SqliteRow, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(at)?.map(Timestamp::from_micros))
}

fn payload(row: &SqliteRow, at: usize) -> Result<Option<String>, sqlx::Error> {
    let bytes: Option<Vec<u8>> = row.try_get(at)?;
    Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// A claimed event, and why it cannot be delivered, if it cannot.
pub(super) fn claimed(row: &SqliteRow, payload_column: &str) -> Result<(ClaimedEvent, Option<String>), sqlx::Error> {
    let available_at = instant(row, 8)?.unwrap_or(Timestamp::from_micros(0));
    let event = ClaimedEvent {
        lease: Lease { event_id: id(row, 0)?, claim_no: row.try_get::<Option<i64>, _>(1)?.unwrap_or(0) },
        event_type: text(row, 2)?.unwrap_or_default(),
        subject: text(row, 3)?,
        headers: headers(row, 4)?,
        attempts: row.try_get(5)?,
        max_attempts: row.try_get(6)?,
        created_at: instant(row, 7)?.unwrap_or(available_at),
        available_at,
        waited: Duration::from_micros(u64::try_from(row.try_get::<Option<i64>, _>(13)?.unwrap_or(0)).unwrap_or(0)),
        deferred_for: None,
        payload: payload(row, 9)?,
        payload_bytes: row.try_get(10)?,
    };
    let has_bytes = row.try_get_raw(9).is_ok_and(|value| !sqlx::ValueRef::is_null(&value));
    let matter = if !row.try_get::<bool, _>(11)? {
        Some("is neither text nor a blob")
    } else if has_bytes && event.payload.is_none() {
        Some("is no UTF-8")
    } else if event.payload.as_deref().is_some_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_err())
    {
        Some("is no JSON")
    } else {
        None
    };
    let why =
        row.try_get::<Option<String>, _>(12)?.or_else(|| matter.map(|matter| format!("{payload_column} {matter}")));
    Ok((event, why))
}

/// An event with the payload that the statement gave.
pub(super) fn event(row: &SqliteRow) -> Result<Event, sqlx::Error> {
    let status = status(row, 4)?;
    let available_at = instant(row, 7)?.unwrap_or(Timestamp::from_micros(0));
    Ok(Event {
        id: id(row, 0)?,
        event_type: text(row, 1)?.unwrap_or_default(),
        subject: text(row, 2)?,
        payload: payload(row, 14)?,
        headers: headers(row, 3)?,
        idempotency_key: None,
        status,
        attempts: row.try_get(5)?,
        max_attempts: row.try_get(6)?,
        requeues: 0,
        available_at,
        locked_at: instant(row, 8)?,
        lease_until: None,
        claim_no: row.try_get(9)?,
        deferred_since: None,
        created_at: instant(row, 10)?.unwrap_or(available_at),
        processed_at: instant(row, 11)?,
        dead_at: if status == Status::DeadLetter { instant(row, 12)? } else { None },
        last_error: text(row, 13)?,
    })
}

/// Headers, as far as they are strings: an application's column may hold anything.
fn headers(row: &SqliteRow, at: usize) -> Result<BTreeMap<String, String>, sqlx::Error> {
    let values: BTreeMap<String, serde_json::Value> =
        text(row, at)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let strings = values.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
    Ok(strings.collect())
}
