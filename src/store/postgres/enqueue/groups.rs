//! Single events that callers enqueue at the same time, written together: one statement, one commit.
//!
//! Nobody waits for company. An event that finds few others under way is written at once; those that come while the
//! database is busy make up the next group. The more callers there are, the larger the groups are, and the cheaper each
//! event is.
//!
//! The events of a group know nothing of one another. Each caller gets the answer to its own event, once that is
//! committed. Where the database fails a whole group because of one of its rows, each event is written again by itself. A
//! caller that goes away changes nothing for its event or for the others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::group::{Written, write_together};
use super::shared_error::same;
use crate::event::NewEvent;
use crate::store::StoreError;
use crate::store::postgres::call::Caller;

/// What a group may hold: so much is written quickly, and is little to keep in memory.
const MAX_EVENTS: usize = 500;
const MAX_PAYLOAD_BYTES: usize = 4 * 1024 * 1024;

/// Single events under way beside which another write is begun. A few callers thus do not wait for one another's commits;
/// with many, one large group at a time costs the server least.
const FEW_EVENTS: usize = 4;

/// How long an event waits for its write to begin, as a call waits for a connection.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many events of a group that failed are written at once, each by itself.
const SINGLE_WRITES: usize = 4;

/// Who has waited for so long when the database turns out to be away is told so, too, and does not try in turn.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// The events that wait to be written.
#[derive(Clone, Default)]
pub(in crate::store::postgres) struct Groups {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Events that are being written.
    under_way: usize,
    /// The number of the last event that came.
    last: u64,
}

struct Waiting {
    number: u64,
    since: Instant,
    event: NewEvent,
    answer: oneshot::Sender<Written>,
}

impl Groups {
    /// Writes an event, together with those of others, and waits until it is committed.
    pub(in crate::store::postgres) async fn enqueue(&self, caller: &Caller, event: NewEvent) -> Written {
        let (answer, mut answered) = oneshot::channel();
        let (number, seat) = self.join(event, answer);
        if let Some(seat) = seat {
            caller.tasks().spawn(write_all(seat, caller.clone()));
        }
        let answer = match timeout(PATIENCE, &mut answered).await {
            Ok(answer) => answer,
            Err(_) if self.withdraw(number) => return Err(too_busy().into()),
            Err(_) => answered.await,
        };
        answer.unwrap_or_else(|_| Err(unanswered().into()))
    }

    /// Puts an event into the queue; gives a seat to write from when one is free.
    fn join(&self, event: NewEvent, answer: oneshot::Sender<Written>) -> (u64, Option<Seat>) {
        let mut queue = self.lock();
        queue.last += 1;
        let number = queue.last;
        queue.waiting.push_back(Waiting { number, since: Instant::now(), event, answer });
        let free = queue.under_way < FEW_EVENTS;
        if free {
            queue.under_way += 1;
        }
        drop(queue);
        (number, free.then(|| Seat { groups: self.clone(), events: 1 }))
    }

    /// Takes an event back; false when its write has begun.
    fn withdraw(&self, number: u64) -> bool {
        let mut queue = self.lock();
        let place = queue.waiting.iter().position(|waiting| waiting.number == number);
        place.and_then(|place| queue.waiting.remove(place)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to write, as long as there is something to write.
struct Seat {
    groups: Groups,
    /// How many events under way are this seat's; one for the seat alone while it has no group yet.
    events: usize,
}

impl Seat {
    /// The next group; none when nobody waits, or others have enough under way: they go on when they have done that. The
    /// seat is given up in the same moment, so that whoever comes next takes one.
    fn next_group(&mut self) -> Option<Vec<Waiting>> {
        let mut queue = self.groups.lock();
        queue.under_way -= self.events;
        self.events = 0;
        if queue.under_way >= FEW_EVENTS {
            return None;
        }
        let group = first_group(&mut queue.waiting);
        self.events = group.len();
        queue.under_way += group.len();
        (!group.is_empty()).then_some(group)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Only after a panic: what nobody gives up would stay under way for ever.
        if self.events > 0 {
            self.groups.lock().under_way -= self.events;
        }
    }
}

/// The events that have waited longest, as many as make a group.
fn first_group(waiting: &mut VecDeque<Waiting>) -> Vec<Waiting> {
    let mut bytes = 0;
    let fits = |waiting: &&Waiting| {
        bytes += waiting.event.payload.len();
        bytes <= MAX_PAYLOAD_BYTES
    };
    let fitting = waiting.iter().take(MAX_EVENTS).take_while(fits).count();
    // An event that is too large for any group is one by itself.
    let count = fitting.max(1).min(waiting.len());
    waiting.drain(..count).collect()
}

/// Writes group after group until nobody waits.
async fn write_all(mut seat: Seat, caller: Caller) {
    loop {
        // Whoever is ready to enqueue at this moment does so first.
        tokio::task::yield_now().await;
        let Some(group) = seat.next_group() else { break };
        write_group(&seat.groups, &caller, group).await;
    }
}

async fn write_group(groups: &Groups, caller: &Caller, group: Vec<Waiting>) {
    let (events, answers): (Vec<_>, Vec<_>) = group.into_iter().map(|waiting| (waiting.event, waiting.answer)).unzip();
    let events = Arc::new(events);
    // Whoever does not take an answer has gone away.
    match write_together(caller, Arc::clone(&events), false).await {
        Ok(written) => {
            for (answer, written) in answers.into_iter().zip(written) {
                let _ = answer.send(written);
            }
        }
        // A trigger of somebody's own may fail a row in any way.
        Err(StoreError::Data { .. } | StoreError::Internal { .. }) if events.len() > 1 => {
            caller.tasks().spawn(write_each(caller.clone(), events, answers));
        }
        // On a task of its own: whoever waits for a lock holds up nobody else.
        Err(StoreError::Locked { .. }) => {
            caller.tasks().spawn(write_each(caller.clone(), events, answers));
        }
        Err(error) => {
            let error = Arc::new(error);
            let late =
                if let StoreError::Unavailable { .. } = *error { late(&mut groups.lock().waiting) } else { Vec::new() };
            for answer in answers.into_iter().chain(late) {
                let _ = answer.send(Err(same(&error).into()));
            }
        }
    }
}

/// Writes each event by itself.
async fn write_each(caller: Caller, events: Arc<Vec<NewEvent>>, answers: Vec<oneshot::Sender<Written>>) {
    let singles = events.iter().cloned().zip(answers);
    let writes = futures_util::stream::iter(singles).for_each_concurrent(SINGLE_WRITES, |(event, answer)| {
        let caller = &caller;
        async move {
            let written = match write_together(caller, Arc::new(vec![event]), true).await {
                Ok(mut written) => written.pop().unwrap_or_else(|| Err(unanswered().into())),
                Err(error) => Err(error.into()),
            };
            let _ = answer.send(written);
        }
    });
    writes.await;
}

/// Those who have waited for long, and wait no more.
fn late(waiting: &mut VecDeque<Waiting>) -> Vec<oneshot::Sender<Written>> {
    let count = waiting.iter().take_while(|waiting| waiting.since.elapsed() >= LONG_WAIT).count();
    waiting.drain(..count).map(|waiting| waiting.answer).collect()
}

fn too_busy() -> StoreError {
    StoreError::Unavailable { reason: "those who came before were not written in time".to_owned(), source: None }
}

fn unanswered() -> StoreError {
    StoreError::Internal { reason: "a write ended without an answer".to_owned(), source: None }
}
