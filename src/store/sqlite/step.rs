//! One call that waits for the writer: its work, what came of it, and who wants to know.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::error::from_shared;
use crate::store::StoreError;

/// What a call does with its connection.
pub(super) type Work<T, E> = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send>;

/// Why a transaction came to nothing, to be told to each of the calls that shared it.
pub(super) enum Failure {
    /// The store has been closed.
    Closed,
    /// Its time was over.
    TooSlow,
    /// The database could not begin or commit it.
    Driver(Arc<sqlx::Error>),
    /// Another call that shared it met an error that ended it as a whole.
    BrokenOff(Arc<sqlx::Error>),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(Arc::new(error))
    }
}

impl Failure {
    /// A savepoint that could not be made or ended.
    pub(super) fn broken_off(error: sqlx::Error) -> Self {
        Self::BrokenOff(Arc::new(error))
    }

    fn told(&self) -> StoreError {
        match self {
            Self::Closed => unavailable("the store is closed"),
            Self::TooSlow => too_slow(),
            Self::Driver(error) => from_shared(error),
            Self::BrokenOff(error) => StoreError::Unavailable {
                reason: "another call broke off the transaction that this one shared".to_owned(),
                source: Some(Box::new(Arc::clone(error))),
            },
        }
    }
}

/// A call, whatever it answers.
pub(super) trait Step: Send {
    /// When its caller is told that it took too long.
    fn ends_at(&self) -> Instant;

    /// Does the work and keeps what came of it. False when nothing of it may stay.
    fn run<'c>(&'c mut self, connection: &'c mut SqliteConnection) -> BoxFuture<'c, bool>;

    /// Tells the caller, now that the transaction has been committed or has failed.
    fn answer(self: Box<Self>, transaction: Result<(), &Failure>);
}

/// A call that answers with a `T`.
pub(super) struct Call<T, E> {
    work: Option<Work<T, E>>,
    result: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
    ends_at: Instant,
}

impl<T, E> Call<T, E> {
    /// The call, and where its answer will come.
    pub(super) fn new(work: Work<T, E>, ends_at: Instant) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (caller, answer) = oneshot::channel();
        (Self { work: Some(work), result: None, caller, ends_at }, answer)
    }
}

impl<T, E> Step for Call<T, E>
where
    T: Send,
    E: From<StoreError> + Send,
{
    fn ends_at(&self) -> Instant {
        self.ends_at
    }

    fn run<'c>(&'c mut self, connection: &'c mut SqliteConnection) -> BoxFuture<'c, bool> {
        Box::pin(async move {
            let Some(work) = self.work.take() else { return false };
            // A panic is the affair of this call alone.
            self.result = AssertUnwindSafe(async move { work(connection).await }).catch_unwind().await.ok();
            matches!(self.result, Some(Ok(_)))
        })
    }

    fn answer(self: Box<Self>, transaction: Result<(), &Failure>) {
        let result = match (self.result, transaction) {
            // Its own error says more than the transaction's.
            (Some(Err(error)), _) => Err(error),
            (_, Err(failure)) => Err(failure.told().into()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(unanswered().into()),
        };
        // Nobody may be there any more.
        let _ = self.caller.send(result);
    }
}

/// The call took longer than a call may.
pub(super) fn too_slow() -> StoreError {
    unavailable("the database did not answer in time")
}

/// The call ended without an answer: it panicked.
pub(super) fn unanswered() -> StoreError {
    StoreError::Internal { reason: "the call's task did not end".to_owned(), source: None }
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable { reason: reason.to_owned(), source: None }
}
