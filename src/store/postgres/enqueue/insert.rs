//! The statement that inserts events, and what it says of each.

use std::collections::HashSet;

use sqlx::Row;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::event::{Due, NewEvent};
use crate::store::Enqueued;
use crate::store::postgres::rows::{date_time, timestamp};
use crate::store::postgres::statements::Statements;

/// The order in which these events are written: that of ids and keys, so that two writers with the same ones cannot wait
/// for each other. Those with neither keep the order in which they came.
pub(super) fn sort(order: &mut [usize], events: &[NewEvent]) {
    order.sort_by(|a, b| {
        let part = |index: &usize| (&events[*index].idempotency_key, events[*index].id, *index);
        part(a).cmp(&part(b))
    });
}

/// Inserts the events that `order` names, in that order, and notes each that was written. Others' uncommitted rows with the
/// same ids and keys are waited for, each for at most so long.
pub(super) async fn insert(
    statements: &Statements,
    events: &[NewEvent],
    order: &[usize],
    lock_timeout_ms: &str,
    connection: &mut PgConnection,
    found: &mut [Option<Enqueued>],
) -> Result<(), sqlx::Error> {
    let column = |index: &usize| &events[*index];
    let ids: Vec<Option<Uuid>> = order.iter().map(|index| column(index).id).collect();
    let types: Vec<&str> = order.iter().map(|index| column(index).event_type.as_str()).collect();
    let subjects: Vec<Option<&str>> = order.iter().map(|index| column(index).subject.as_deref()).collect();
    let payloads: Vec<&str> = order.iter().map(|index| column(index).payload.as_str()).collect();
    let headers: Vec<String> =
        order.iter().map(|index| serde_json::json!(column(index).kept_headers()).to_string()).collect();
    let keys: Vec<Option<&str>> = order.iter().map(|index| column(index).idempotency_key.as_deref()).collect();
    let fingerprints: Vec<Option<Vec<u8>>> = order.iter().map(|index| fingerprint(column(index))).collect();
    let limits: Vec<i32> = order.iter().map(|index| column(index).max_attempts).collect();
    let due: Vec<(Option<OffsetDateTime>, i64)> = order.iter().map(|index| due(column(index).due)).collect();
    let (due_at, delays): (Vec<Option<OffsetDateTime>>, Vec<i64>) = due.into_iter().unzip();
    let query = statements
        .insert()
        .bind(ids)
        .bind(types)
        .bind(subjects)
        .bind(payloads)
        .bind(headers)
        .bind(keys)
        .bind(fingerprints)
        .bind(limits)
        .bind(due_at)
        .bind(delays)
        .bind(lock_timeout_ms);
    let rows = query.fetch_all(connection).await?;
    let mut written = Vec::with_capacity(rows.len());
    for row in rows {
        let (place, id): (i64, Uuid) = (row.try_get(0)?, row.try_get(1)?);
        written.push((place, id, row.try_get(2)?, row.try_get(3)?));
    }
    // Where two events have the same id the first one was written, and the statement's answer names both.
    written.sort_unstable_by_key(|(place, ..)| *place);
    let mut seen = HashSet::with_capacity(written.len());
    for (place, id, created_at, available_at) in written {
        let index = usize::try_from(place - 1).ok().and_then(|place| order.get(place)).copied();
        let Some(index) = index.filter(|_| seen.insert(id)) else { continue };
        found[index] = Some(Enqueued::new(&events[index], id.into(), timestamp(created_at), timestamp(available_at)));
    }
    Ok(())
}

/// Kept only where a replay can be recognised by it.
fn fingerprint(event: &NewEvent) -> Option<Vec<u8>> {
    (event.id.is_some() || event.idempotency_key.is_some()).then(|| event.fingerprint())
}

fn due(due: Due) -> (Option<OffsetDateTime>, i64) {
    match due {
        Due::Now => (None, 0),
        Due::AfterMs(ms) => (None, i64::try_from(ms).unwrap_or(i64::MAX)),
        Due::At(at) => (Some(date_time(at)), 0),
    }
}
