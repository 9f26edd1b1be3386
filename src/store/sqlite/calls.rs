//! One call of the store: its own task, one connection, a deadline.
//!
//! A caller that drops its future does not interrupt the call: the task runs to its end. A call that is not done within
//! the deadline fails as unavailable and its connection is closed, not returned, so that no open transaction can ever
//! meet a later borrower.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;
use tokio::time::{Instant, timeout_at};

use super::SqliteStore;
use super::error::from_sqlx;
use super::step::{Call, too_slow, unanswered};
use crate::store::StoreError;

impl SqliteStore {
    /// Runs the work in one immediate transaction of the writer, perhaps beside others: committed when it succeeds, taken
    /// back when not.
    pub(super) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    {
        let (call, answer) = Call::new(Box::new(work), Instant::now() + self.call_deadline);
        self.writer.queue(Box::new(call));
        let writer = Arc::clone(&self.writer);
        self.tasks.spawn(async move { writer.take_turn().await });
        answer.await.unwrap_or_else(|_| Err(unanswered().into()))
    }

    /// Runs the work on a reading connection.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        let ends_at = Instant::now() + self.call_deadline;
        let pool = self.reader.clone();
        let task = self.tasks.spawn(async move {
            let acquired = timeout_at(ends_at, pool.acquire()).await.map_err(|_| too_slow())?;
            let mut connection = acquired.map_err(from_sqlx)?;
            let answer = timeout_at(ends_at, work(&mut connection)).await;
            answer.unwrap_or_else(|_| {
                connection.close_on_drop();
                Err(too_slow())
            })
        });
        task.await.unwrap_or_else(|_| Err(unanswered()))
    }
}
