//! From rows to events. A plain INSERT can leave odd rows behind (header values that are no strings, text that is not
//! UTF-8); reading one of them must not fail its neighbours.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};

use super::error::{from_sqlx, unreadable};
use crate::event::{Event, EventId, Status};
use crate::lease::{ClaimedEvent, Lease};
use crate::store::StoreError;
use crate::timestamp::Timestamp;

/// What [`event`] reads, in its order; the payload, or NULL, comes behind these.
pub(super) const EVENT_COLUMNS: &str = "{id}, {event_type}, {subject}, {headers}, {idempotency_key}, {status}, \
    {attempts}, {max_attempts}, {requeues}, {available_at}, {locked_at}, {lease_until}, {claim_no}, \
    {deferred_since}, {created_at}, {processed_at}, {dead_at}, {last_error}";

/// What [`claimed`] reads, in its order; the payload, or NULL, comes behind these.
pub(super) const CLAIMED_COLUMNS: &str = "{id}, {claim_no}, {event_type}, {subject}, {headers}, {attempts}, \
    {max_attempts}, {created_at}, {available_at}, {locked_at} - {deferred_since}, length(CAST({payload} AS BLOB)), \
    {locked_at} - {available_at}";

/// One value of a row.
pub(super) fn get<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(row: &'r SqliteRow, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(from_sqlx)
}

/// An id.
pub(super) fn id(row: &SqliteRow, at: usize) -> Result<EventId, StoreError> {
    get(row, at).map(EventId::from_text)
}

/// An instant.
pub(super) fn instant(row: &SqliteRow, at: usize) -> Result<Timestamp, StoreError> {
    get(row, at).map(Timestamp::from_micros)
}

/// An instant that may be absent.
pub(super) fn optional_instant(row: &SqliteRow, at: usize) -> Result<Option<Timestamp>, StoreError> {
    Ok(get::<Option<i64>>(row, at)?.map(Timestamp::from_micros))
}

/// A status.
pub(super) fn status(row: &SqliteRow, at: usize) -> Result<Status, StoreError> {
    get::<&str>(row, at)?.parse().map_err(|_| unreadable("status"))
}

/// Text that somebody else may have written: what is not UTF-8 is replaced.
pub(super) fn lenient_text(row: &SqliteRow, at: usize) -> Result<Option<String>, StoreError> {
    Ok(get::<Option<Vec<u8>>>(row, at)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// A payload; one that is not UTF-8 cannot be delivered byte for byte and counts as unreadable.
pub(super) fn payload(row: &SqliteRow, at: usize) -> Result<Option<String>, StoreError> {
    Ok(get::<Option<Vec<u8>>>(row, at)?.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// An event from [`EVENT_COLUMNS`] and its payload.
pub(super) fn event(row: &SqliteRow) -> Result<Event, StoreError> {
    Ok(Event {
        id: id(row, 0)?,
        event_type: get(row, 1)?,
        subject: lenient_text(row, 2)?,
        headers: headers(row, 3)?,
        idempotency_key: lenient_text(row, 4)?,
        status: status(row, 5)?,
        attempts: get(row, 6)?,
        max_attempts: get(row, 7)?,
        requeues: get(row, 8)?,
        available_at: instant(row, 9)?,
        locked_at: optional_instant(row, 10)?,
        lease_until: optional_instant(row, 11)?,
        claim_no: get(row, 12)?,
        deferred_since: optional_instant(row, 13)?,
        created_at: instant(row, 14)?,
        processed_at: optional_instant(row, 15)?,
        dead_at: optional_instant(row, 16)?,
        last_error: lenient_text(row, 17)?,
        payload: payload(row, 18)?,
    })
}

/// A claimed event from [`CLAIMED_COLUMNS`] and its payload.
pub(super) fn claimed(row: &SqliteRow) -> Result<ClaimedEvent, StoreError> {
    let deferred_for = get::<Option<i64>>(row, 9)?;
    Ok(ClaimedEvent {
        lease: Lease { event_id: id(row, 0)?, claim_no: get(row, 1)? },
        event_type: get(row, 2)?,
        subject: lenient_text(row, 3)?,
        headers: headers(row, 4)?,
        attempts: get(row, 5)?,
        max_attempts: get(row, 6)?,
        created_at: instant(row, 7)?,
        available_at: instant(row, 8)?,
        deferred_for: deferred_for.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
        payload_bytes: get(row, 10)?,
        waited: Duration::from_micros(u64::try_from(get::<i64>(row, 11)?).unwrap_or(0)),
        payload: payload(row, 12)?,
    })
}

/// Headers. One that is no string becomes a header without a name, which no event may have: so the event is refused
/// when it is handled, and only this one.
fn headers(row: &SqliteRow, at: usize) -> Result<BTreeMap<String, String>, StoreError> {
    let bytes: Vec<u8> = get(row, at)?;
    let refused = || BTreeMap::from([(String::new(), String::new())]);
    let Ok(values) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(&bytes) else { return Ok(refused()) };
    Ok(values
        .into_iter()
        .map(|(name, value)| match serde_json::from_str::<String>(value.get()) {
            Ok(text) => (name, text),
            Err(_) => (String::new(), String::new()),
        })
        .collect())
}
