//! Single events of many callers: inserted by one autocommit statement; what it passed over is then compared with what
//! is there.
//!
//! The comparison is a statement of its own, after the commit: whatever becomes of it, the others have been written, and an
//! event that another one of the group repeats counts as there like any other.

use std::sync::Arc;

use super::insert::{insert, sort};
use super::known::{Verdict, find, judge};
use super::shared_error::same;
use super::{LOCK_TIMEOUT_MS, TRIES, keeps_changing};
use crate::event::NewEvent;
use crate::store::postgres::call::Caller;
use crate::store::{EnqueueError, Enqueued, StoreError};

/// How long somebody's uncommitted row with the same key or id is waited for while others wait for the same commit, or for
/// their turn: long enough for any ordinary commit, and for less than a deadlock takes to be noticed.
const SHORT_LOCK_TIMEOUT_MS: &str = "100";

/// What became of one event.
pub(super) type Written = Result<Enqueued, EnqueueError>;

/// Writes events that have nothing to do with one another, commits, and says what became of each, in their order. The index
/// in an event's error is 0. Only `patient`ly is a row waited for that somebody else has locked.
///
/// # Errors
/// Nothing was written. [`StoreError::Data`] and [`StoreError::Locked`] may be the fault of a single event.
pub(super) async fn write_together(
    caller: &Caller,
    events: Arc<Vec<NewEvent>>,
    patient: bool,
) -> Result<Vec<Written>, StoreError> {
    let lock_timeout = if patient { LOCK_TIMEOUT_MS } else { SHORT_LOCK_TIMEOUT_MS };
    let mut answers: Vec<Option<Written>> = events.iter().map(|_| None).collect();
    for _ in 0..TRIES {
        let left: Vec<usize> = (0..events.len()).filter(|index| answers[*index].is_none()).collect();
        if left.is_empty() {
            break;
        }
        match write_once(caller, &events, left.clone(), lock_timeout).await {
            Ok(written) => written.into_iter().for_each(|(index, written)| answers[index] = Some(written)),
            Err(error) if left.len() == events.len() => return Err(error),
            Err(error) => fail(left, error).for_each(|(index, failed)| answers[index] = Some(failed)),
        }
    }
    Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(keeps_changing().into()))).collect())
}

/// Writes the events that are left and says what became of them; of those whose opposite has vanished meanwhile, nothing.
async fn write_once(
    caller: &Caller,
    events: &Arc<Vec<NewEvent>>,
    mut left: Vec<usize>,
    lock_timeout: &'static str,
) -> Result<Vec<(usize, Written)>, StoreError> {
    sort(&mut left, events);
    let mut found = inserted(caller, events, left.clone(), lock_timeout).await?;
    let passed_over: Vec<usize> = left.iter().copied().filter(|index| found[*index].is_none()).collect();
    let mut written: Vec<_> = left.into_iter().filter_map(|index| Some((index, Ok(found[index].take()?)))).collect();
    if !passed_over.is_empty() {
        match verdicts(caller, events, passed_over.clone()).await {
            Ok(verdicts) => {
                let judged = passed_over.into_iter().zip(verdicts);
                written.extend(judged.filter_map(|(index, verdict)| Some((index, answer(verdict)?))));
            }
            Err(error) => written.extend(fail(passed_over, error)),
        }
    }
    Ok(written)
}

async fn inserted(
    caller: &Caller,
    events: &Arc<Vec<NewEvent>>,
    order: Vec<usize>,
    lock_timeout: &'static str,
) -> Result<Vec<Option<Enqueued>>, StoreError> {
    let arguments = (Arc::clone(events), order, lock_timeout);
    let step = caller.call(arguments, |statements, (events, order, lock_timeout), connection| {
        Box::pin(async move {
            let mut found = vec![None; events.len()];
            insert(statements, events, order, lock_timeout, connection, &mut found).await?;
            Ok(found)
        })
    });
    step.await
}

async fn verdicts(
    caller: &Caller,
    events: &Arc<Vec<NewEvent>>,
    passed_over: Vec<usize>,
) -> Result<Vec<Verdict>, StoreError> {
    let step = caller.read((Arc::clone(events), passed_over), |statements, (events, passed_over), connection| {
        Box::pin(async move {
            let requests = passed_over.iter().map(|index| &events[*index]);
            let known = find(statements, requests.clone(), connection).await?;
            Ok(requests.map(|request| judge(&known, request)).collect())
        })
    });
    step.await
}

fn answer(verdict: Verdict) -> Option<Written> {
    match verdict {
        Verdict::Replay(known) => Some(Ok(*known)),
        Verdict::KeyReused => Some(Err(EnqueueError::KeyReused { index: 0 })),
        Verdict::IdConflict => Some(Err(EnqueueError::IdConflict { index: 0 })),
        Verdict::Vanished => None,
    }
}

/// The same failure for each of these.
fn fail(indices: Vec<usize>, error: StoreError) -> impl Iterator<Item = (usize, Written)> {
    let error = Arc::new(error);
    indices.into_iter().map(move |index| (index, Err(same(&error).into())))
}
