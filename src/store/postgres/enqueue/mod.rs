//! Enqueueing: all events of a request or none, each new or a replay. A request with a single event is written together
//! with those of others, see [`groups`].
//!
//! Without keys and ids of the caller's own nothing can clash, and one autocommit statement does it. With them, what the
//! insert passed over is compared with what is there, in one transaction on a task of its own.

mod group;
mod groups;
mod insert;
mod known;
mod shared_error;

use std::collections::HashMap;

use sqlx::Connection;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

pub(super) use self::groups::Groups;
use self::insert::{insert, sort};
use self::known::{Verdict, find, judge};
use super::call::Caller;
use super::statements::Statements;
use crate::event::NewEvent;
use crate::store::{EnqueueError, Enqueued, StoreError};

/// How often a request is tried again when what it clashed with has vanished before it could be read.
const TRIES: u32 = 5;

/// How long a request waits for somebody's uncommitted row with the same key or id.
const LOCK_TIMEOUT_MS: &str = "1000";

/// What one try found.
enum Tried {
    /// Everything is written or was there.
    Done(Vec<Enqueued>),
    /// This event clashes by its key (true) or its id; nothing was written.
    Clash { index: usize, by_key: bool },
    /// What was clashed with is gone.
    Vanished,
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
    Err(keeps_changing().into())
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
    sort(&mut order, events);
    let may_clash = events.iter().any(|event| event.id.is_some() || event.idempotency_key.is_some());
    let mut found: Vec<Option<Enqueued>> = vec![None; events.len()];
    if may_clash {
        let mut transaction = connection.begin().await?;
        insert(statements, events, &order, LOCK_TIMEOUT_MS, &mut transaction, &mut found).await?;
        if let Some(problem) = fill_replays(statements, events, &order, &mut transaction, &mut found).await? {
            transaction.rollback().await?;
            return Ok(problem);
        }
        transaction.commit().await?;
    } else {
        insert(statements, events, &order, LOCK_TIMEOUT_MS, connection, &mut found).await?;
    }
    let answer = |index: usize| {
        let enqueued = found[first[index]].clone()?;
        Some(Enqueued { created: enqueued.created && first[index] == index, ..enqueued })
    };
    Ok((0..events.len()).map(answer).collect::<Option<Vec<_>>>().map_or(Tried::Vanished, Tried::Done))
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
    let known = find(statements, missing.iter().map(|index| &events[*index]), connection).await?;
    for index in missing {
        match judge(&known, &events[index]) {
            Verdict::Replay(enqueued) => found[index] = Some(*enqueued),
            Verdict::KeyReused => return Ok(Some(Tried::Clash { index, by_key: true })),
            Verdict::IdConflict => return Ok(Some(Tried::Clash { index, by_key: false })),
            Verdict::Vanished => return Ok(Some(Tried::Vanished)),
        }
    }
    Ok(None)
}

fn keeps_changing() -> StoreError {
    let reason = "the event that this one repeats keeps changing".to_owned();
    StoreError::Unavailable { reason, source: None }
}
