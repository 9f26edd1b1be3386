//! The only writer. Calls that wait for it together share one transaction and pay for one commit.
//!
//! `SQLite` has one writer at a time, and a durable commit waits for the disk, which takes longer than most statements.
//! So whoever's turn it is runs not only its own call but also those that are waiting by then. The first needs no
//! savepoint: when it fails, nothing else is in the transaction yet. Each later one has its own, so that a call that
//! fails takes back only what it did itself. All are answered after the commit; when it fails, all of them have failed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::Mutex as Turns;
use tokio::time::{Instant, timeout_at};

use super::step::{Failure, Step};

/// Calls that share one transaction at most.
const MOST_STEPS: usize = 64;
/// How long a transaction takes in further calls: its first caller is waiting, and so may another process be.
/// The tests want to see them share it, however busy the machine is.
const OPEN_FOR: Duration = Duration::from_millis(if cfg!(test) { 10_000 } else { 10 });

/// Calls that wait, and the connection that they wait for.
pub(super) struct Writer {
    options: SqliteConnectOptions,
    waiting: Mutex<VecDeque<Box<dyn Step>>>,
    /// Whoever holds it writes.
    seat: Turns<Seat>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// How much time a call must have left to take others along.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// The place of the one who writes.
enum Seat {
    /// The connection; none before the first call and after one that left it in a state that nobody knows.
    Open(Option<SqliteConnection>),
    Closed,
}

impl Writer {
    /// A writer that already has its connection, and can make another one like it.
    pub(super) fn new(options: SqliteConnectOptions, connection: SqliteConnection) -> Self {
        Self { options, waiting: Mutex::default(), seat: Turns::new(Seat::Open(Some(connection))) }
    }

    /// Puts a call behind those that wait. Somebody must then take a turn.
    pub(super) fn queue(&self, step: Box<dyn Step>) {
        self.waiting().push_back(step);
    }

    /// Writes what is waiting, if somebody else has not done so already. One turn for each call that was queued is
    /// enough for all of them to be answered.
    pub(super) async fn take_turn(&self) {
        let mut seat = self.seat.lock().await;
        let Some(first) = self.next() else { return };
        let ends_at = first.ends_at();
        if ends_at <= Instant::now() {
            // It has waited too long to begin; the connection has nothing to do with it.
            drop(seat);
            first.answer(Err(&Failure::TooSlow));
            return;
        }
        let mut steps = vec![first];
        let result = timeout_at(ends_at, self.transaction(&mut seat, &mut steps)).await;
        let result = result.unwrap_or(Err(Failure::TooSlow));
        if let (Err(_), Seat::Open(connection)) = (&result, &mut *seat) {
            // Closed, it takes back whatever it had begun; an open transaction never meets a later call.
            *connection = None;
        }
        drop(seat);
        for step in steps {
            step.answer(result.as_ref().copied());
        }
    }

    /// Closes the connection. Calls that come later fail.
    pub(super) async fn close(&self) {
        let seat = std::mem::replace(&mut *self.seat.lock().await, Seat::Closed);
        if let Seat::Open(Some(connection)) = seat {
            // There is nobody left to tell.
            let _ = connection.close().await;
        }
    }

    /// Runs the first step and those that are waiting behind it in one transaction.
    async fn transaction(&self, seat: &mut Seat, steps: &mut Vec<Box<dyn Step>>) -> Result<(), Failure> {
        let Seat::Open(seat) = seat else { return Err(Failure::Closed) };
        let connection = match seat {
            Some(connection) => connection,
            None => seat.insert(self.options.connect().await?),
        };
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let begun = Instant::now();
        for first in steps.iter_mut() {
            if !first.run(&mut transaction).await {
                return Ok(transaction.rollback().await?);
            }
        }
        // Whoever comes along is answered by the first one's deadline.
        let has_time = steps.iter().all(|first| first.ends_at() >= begun + LEAST_TIME);
        while has_time && steps.len() < MOST_STEPS && begun.elapsed() < OPEN_FOR {
            let Some(step) = self.next() else { break };
            // Before anything can go wrong, so that it will be answered.
            steps.push(step);
            let Some(step) = steps.last_mut() else { break };
            let mut savepoint = transaction.begin().await.map_err(Failure::broken_off)?;
            let stays = step.run(&mut savepoint).await;
            let ended = if stays { savepoint.commit().await } else { savepoint.rollback().await };
            // An error that has ended the whole transaction shows here: there is no savepoint any more.
            ended.map_err(Failure::broken_off)?;
        }
        Ok(transaction.commit().await?)
    }

    fn next(&self) -> Option<Box<dyn Step>> {
        self.waiting().pop_front()
    }

    /// A queue that a panic left behind is as whole as before: it is only pushed to and popped from.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Box<dyn Step>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
