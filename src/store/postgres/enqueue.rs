//! Enqueueing: all events of a request or none, each new or a replay.
//!
//! Without keys and ids of the caller's own nothing can clash, and one autocommit statement does it. With them, what the
//! insert passed over is compared with what is there, in one transaction on a task of its own.

use std::collections::HashMap;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::call::Caller;
use super::rows::{date_time, event};
use super::statements::Statements;
use crate::event::{Due, Event, NewEvent};
use crate::store::{EnqueueError, Enqueued, StoreError};

/// How often a request is tried again when what it clashed with has vanished before it could be read.
const TRIES: u32 = 5;

/// What one try found.
enum Tried {
    /// Everything is written or was there.
    Done(Vec<Enqueued>),
    /// This event clashes by its key (true) or its id; nothing was written.
    Clash { index: usize, by_key: bool },
    /// What was clashed with is gone.
    Vanished,
}

/// An event that is already there.
struct Known {
    event: Event,
    fingerprint: Option<Vec<u8>>,
    payload: Option<String>,
}

impl Known {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        let (fingerprint, payload) = (row.try_get("fingerprint")?, row.try_get("payload")?);
        Ok(Self { event: event(row)?, fingerprint, payload })
    }

    /// Whether this request made it. A plain INSERT leaves no fingerprint; then the contents are compared.
    fn was_made_by(&self, request: &NewEvent) -> bool {
        let fingerprint = self.fingerprint.clone().unwrap_or_else(|| {
            let stored = NewEvent {
                id: None,
                event_type: self.event.event_type.clone(),
                subject: self.event.subject.clone(),
                payload: self.payload.clone().unwrap_or_default(),
                headers: self.event.headers.clone(),
                due: request.due,
                max_attempts: self.event.max_attempts,
                idempotency_key: None,
            };
            stored.fingerprint()
        });
        fingerprint == request.fingerprint()
    }
}

pub(super) async fn enqueue(caller: &Caller, events: &[NewEvent]) -> Result<Vec<Enqueued>, EnqueueError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let first = repeats(events)?;
    for _ in 0..TRIES {
        let arguments = (events.to_vec(), first.clone());
        let tried = caller
            .call(arguments, |statements, (events, first), connection| {
                Box::pin(write(statements, events, first, connection))
            })
            .await?;
        match tried {
            Tried::Done(enqueued) => return Ok(enqueued),
            Tried::Clash { index, by_key: true } => return Err(EnqueueError::KeyReused { index }),
            Tried::Clash { index, by_key: false } => return Err(EnqueueError::IdConflict { index }),
            Tried::Vanished => {}
        }
    }
    let reason = "the event that this one repeats keeps changing".to_owned();
    Err(StoreError::Unavailable { reason, source: None }.into())
}

/// For each event the one of the request that it repeats, by key or by id; its own index when it repeats none. What
/// repeats another is not written, so nothing can repeat it in turn.
fn repeats(events: &[NewEvent]) -> Result<Vec<usize>, EnqueueError> {
    let mut by_key: HashMap<&str, usize> = HashMap::new();
    let mut by_id: HashMap<Uuid, usize> = HashMap::new();
    let mut first = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        let key = event.idempotency_key.as_deref();
        let of_key = key.and_then(|key| by_key.get(key).copied());
        let of_id = event.id.and_then(|id| by_id.get(&id).copied());
        match of_key.or(of_id) {
            Some(known) if events[known].fingerprint() == event.fingerprint() => first.push(known),
            Some(_) if of_key.is_some() => return Err(EnqueueError::KeyReused { index }),
            Some(_) => return Err(EnqueueError::IdConflict { index }),
            None => {
                by_key.extend(key.map(|key| (key, index)));
                by_id.extend(event.id.map(|id| (id, index)));
                first.push(index);
            }
        }
    }
    Ok(first)
}

async fn write(
    statements: &Statements,
    events: &[NewEvent],
    first: &[usize],
    connection: &mut PgConnection,
) -> Result<Tried, sqlx::Error> {
    let mut order: Vec<usize> = (0..events.len()).filter(|index| first[*index] == *index).collect();
    // In the order of keys and ids, so that two requests with the same ones cannot wait for each other.
    order.sort_by(|a, b| {
        let part = |index: &usize| (&events[*index].idempotency_key, events[*index].id, *index);
        part(a).cmp(&part(b))
    });
    let may_clash = events.iter().any(|event| event.id.is_some() || event.idempotency_key.is_some());
    let mut found: Vec<Option<Enqueued>> = vec![None; events.len()];
    if may_clash {
        let mut transaction = connection.begin().await?;
        insert(statements, events, &order, &mut transaction, &mut found).await?;
        if let Some(problem) = fill_replays(statements, events, &order, &mut transaction, &mut found).await? {
            transaction.rollback().await?;
            return Ok(problem);
        }
        transaction.commit().await?;
    } else {
        insert(statements, events, &order, connection, &mut found).await?;
    }
    let answer = |index: usize| {
        let enqueued = found[first[index]].clone()?;
        Some(Enqueued { created: enqueued.created && first[index] == index, ..enqueued })
    };
    Ok((0..events.len()).map(answer).collect::<Option<Vec<_>>>().map_or(Tried::Vanished, Tried::Done))
}

async fn insert(
    statements: &Statements,
    events: &[NewEvent],
    order: &[usize],
    connection: &mut PgConnection,
    found: &mut [Option<Enqueued>],
) -> Result<(), sqlx::Error> {
    let column = |index: &usize| &events[*index];
    let ids: Vec<Option<Uuid>> = order.iter().map(|index| column(index).id).collect();
    let types: Vec<&str> = order.iter().map(|index| column(index).event_type.as_str()).collect();
    let subjects: Vec<Option<&str>> = order.iter().map(|index| column(index).subject.as_deref()).collect();
    let payloads: Vec<&str> = order.iter().map(|index| column(index).payload.as_str()).collect();
    let headers: Vec<String> = order.iter().map(|index| serde_json::json!(column(index).headers).to_string()).collect();
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
        .bind(delays);
    for row in query.fetch_all(connection).await? {
        let place: i64 = row.try_get("place")?;
        let index = usize::try_from(place - 1).ok().and_then(|place| order.get(place));
        if let Some(slot) = index.and_then(|index| found.get_mut(*index)) {
            *slot = Some(Enqueued { event: event(&row)?, created: true });
        }
    }
    Ok(())
}

/// Finds what the insert passed over; says so when one of them is no replay.
async fn fill_replays(
    statements: &Statements,
    events: &[NewEvent],
    order: &[usize],
    connection: &mut PgConnection,
    found: &mut [Option<Enqueued>],
) -> Result<Option<Tried>, sqlx::Error> {
    let missing: Vec<usize> = order.iter().copied().filter(|index| found[*index].is_none()).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let keys: Vec<&str> = missing.iter().filter_map(|index| events[*index].idempotency_key.as_deref()).collect();
    let ids: Vec<Uuid> = missing.iter().filter_map(|index| events[*index].id).collect();
    let rows = statements.known().bind(keys).bind(ids).fetch_all(connection).await?;
    let known = rows.iter().map(Known::read).collect::<Result<Vec<_>, _>>()?;
    for index in missing {
        let request = &events[index];
        let has_key = |known: &&Known| {
            request.idempotency_key.is_some() && known.event.idempotency_key == request.idempotency_key
        };
        let has_id = |known: &&Known| request.id == Some(known.event.id);
        let by_key = known.iter().find(has_key);
        match by_key.or_else(|| known.iter().find(has_id)) {
            None => return Ok(Some(Tried::Vanished)),
            Some(known) if known.was_made_by(request) => {
                found[index] = Some(Enqueued { event: known.event.clone(), created: false });
            }
            Some(_) => return Ok(Some(Tried::Clash { index, by_key: by_key.is_some() })),
        }
    }
    Ok(None)
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
