//! Looking at events: one by its id, its attempt log, those in flight.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use serde_json::value::RawValue;
use sqlx::{SqlStr, SqliteConnection};

use super::SqliteStore;
use super::error::from_sqlx;
use super::row::{event, get, id, instant, lenient_text, payload};
use crate::event::{Event, EventId};
use crate::lease::ClaimKey;
use crate::store::{Attempt, InFlightKey, StoreError};

/// Events that an in-flight query names at most.
const MOST_IN_FLIGHT: usize = 10;

/// No parameters.
pub(super) const CLAIM_KEY: &str = "-- outbox: key of claim tokens
SELECT value FROM {secrets} WHERE name = 'claim_token'";

/// ?1 id, ?2 the largest payload that is read; -1 for none.
pub(super) const EVENT: &str = "-- outbox: event
SELECT {event_columns}, CASE WHEN length(CAST({payload} AS BLOB)) <= ?2 THEN {payload} END
FROM {events}
WHERE {id} = ?1";

/// ?1 id.
pub(super) const ATTEMPTS: &str = "-- outbox: attempts
SELECT number, claim_no, started_at, duration_ms, outcome, status_code, error, response
FROM {attempts_log}
WHERE event_id = ?1
ORDER BY claim_no
LIMIT 1000";

/// ?1 types as a JSON array, empty for all; ?2 subject.
pub(super) const IN_FLIGHT_SUBJECT: &str = "-- outbox: in flight by subject
SELECT e.{id}
FROM {events} AS e INDEXED BY outbox_event_subject
WHERE e.{subject} = ?2 AND e.{processed_at} IS NULL
    AND (?1 = '[]' OR e.{event_type} IN (SELECT value FROM json_each(?1)))
LIMIT 10";

/// ?1 types as a JSON array, empty for all; ?2 the largest payload that is read. The values are compared outside, for
/// `SQLite`'s own ->> would turn true into 1 and rewrite numbers. There is no limit: a false "not in flight" would be
/// worse than a slow answer, which the call's deadline ends.
pub(super) const IN_FLIGHT_PAYLOAD: &str = "-- outbox: in flight by payload
SELECT e.{id}, CASE WHEN length(CAST(e.{payload} AS BLOB)) <= ?2 THEN e.{payload} END
FROM {events} AS e INDEXED BY outbox_event_live
WHERE e.{processed_at} IS NULL
    AND (?1 = '[]' OR e.{event_type} IN (SELECT value FROM json_each(?1)))";

impl SqliteStore {
    pub(super) async fn read_claim_key(&self) -> Result<ClaimKey, StoreError> {
        let statement = self.statements.claim_key.clone();
        self.read(move |connection| {
            Box::pin(async move {
                let key: Vec<u8> = sqlx::query_scalar(statement).fetch_one(connection).await.map_err(from_sqlx)?;
                Ok(ClaimKey::new(&key))
            })
        })
        .await
    }

    pub(super) async fn read_event(&self, event_id: &EventId, with_payload: bool) -> Result<Option<Event>, StoreError> {
        let statement = self.statements.event.clone();
        let max_payload_bytes = if with_payload { self.max_payload_bytes } else { -1 };
        let event_id = event_id.to_string();
        self.read(move |connection| {
            Box::pin(async move {
                let query = sqlx::query(statement).bind(event_id).bind(max_payload_bytes);
                query.fetch_optional(connection).await.map_err(from_sqlx)?.as_ref().map(event).transpose()
            })
        })
        .await
    }

    pub(super) async fn read_attempts(&self, event_id: &EventId) -> Result<Vec<Attempt>, StoreError> {
        let statement = self.statements.attempts.clone();
        let event_id = event_id.to_string();
        let rows = self
            .read(move |connection| {
                Box::pin(async move {
                    let query = sqlx::query(statement).bind(event_id);
                    query.fetch_all(connection).await.map_err(from_sqlx)
                })
            })
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Attempt {
                    number: get(row, 0)?,
                    claim_no: get(row, 1)?,
                    started_at: instant(row, 2)?,
                    duration_ms: get(row, 3)?,
                    outcome: get(row, 4)?,
                    status_code: get(row, 5)?,
                    error: lenient_text(row, 6)?,
                    response: lenient_text(row, 7)?,
                })
            })
            .collect()
    }

    pub(super) async fn find_in_flight(&self, types: &[String], key: &InFlightKey) -> Result<Vec<EventId>, StoreError> {
        let types = serde_json::json!(types).to_string();
        match key.clone() {
            InFlightKey::Subject(subject) => {
                let statement = self.statements.in_flight_subject.clone();
                self.read(move |connection| {
                    Box::pin(async move {
                        let query = sqlx::query(statement).bind(types).bind(subject);
                        query.fetch_all(connection).await.map_err(from_sqlx)?.iter().map(|row| id(row, 0)).collect()
                    })
                })
                .await
            }
            InFlightKey::Payload { key, value } => {
                let statement = self.statements.in_flight_payload.clone();
                let max_payload_bytes = self.max_payload_bytes;
                self.read(move |connection| {
                    Box::pin(by_payload(connection, statement, types, max_payload_bytes, key, value))
                })
                .await
            }
        }
    }
}

/// Reads the candidates one by one: together they may be larger than the memory.
pub(super) async fn by_payload(
    connection: &mut SqliteConnection,
    statement: SqlStr,
    types: String,
    max_payload_bytes: i64,
    key: String,
    value: String,
) -> Result<Vec<EventId>, StoreError> {
    let mut rows = sqlx::query(statement).bind(types).bind(max_payload_bytes).fetch(connection);
    let mut ids = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(from_sqlx)? {
        if payload(&row, 1)?.is_some_and(|text| holds(&text, &key, &value)) {
            ids.push(id(&row, 0)?);
            if ids.len() == MOST_IN_FLIGHT {
                break;
            }
        }
    }
    Ok(ids)
}

/// Whether the payload is an object that has this value under this key, compared as Postgres' `->>` would: the last of
/// equal keys counts, a string is its text, null is nothing, anything else is its source text. Payloads that Postgres
/// cannot turn into text, those with an escaped NUL or half a surrogate pair, hold nothing.
fn holds(payload: &str, key: &str, value: &str) -> bool {
    if crate::json::check(payload).is_err() {
        return false;
    }
    let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(payload) else { return false };
    match object.get(key).map(|found| found.get()) {
        None | Some("null") => false,
        Some(text) if text.starts_with('"') => serde_json::from_str::<String>(text).is_ok_and(|text| text == value),
        Some(text) => text == value,
    }
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn values_compare_as_postgres_would_give_them_as_text() {
        let payload =
            r#"{"n":1.50,"big":12345678901234567890,"yes":true,"s":"a\u00e9\"","x":null,"o":{"a": 1},"n":2.50}"#;
        for (key, value) in
            [("n", "2.50"), ("big", "12345678901234567890"), ("yes", "true"), ("s", "aé\""), ("o", r#"{"a": 1}"#)]
        {
            assert!(holds(payload, key, value), "{key}");
        }
        for (key, value) in [("n", "1.50"), ("n", "2.5"), ("yes", "1"), ("x", "null"), ("x", ""), ("none", "")] {
            assert!(!holds(payload, key, value), "{key}");
        }
    }

    #[test]
    fn payloads_that_are_no_readable_object_hold_nothing() {
        for payload in ["[1]", "1", "", "{", r#"{"k":"v","z":"\u0000"}"#, r#"{"k":"v","z":"\ud800"}"#] {
            assert!(!holds(payload, "k", "v"), "{payload}");
        }
    }
}
