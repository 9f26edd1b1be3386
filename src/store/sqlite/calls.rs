//! One call of the store: its own task, one connection, a deadline.
//!
//! A caller that drops its future does not interrupt the call: the task runs to its end. A call that is not done within
//! the deadline fails as unavailable and its connection is closed, not returned, so that no open transaction can ever
//! meet a later borrower.

use futures_util::future::BoxFuture;
use sqlx::{Connection, SqliteConnection, SqlitePool};
use tokio::time::{Instant, timeout_at};

use super::SqliteStore;
use super::error::from_sqlx;
use crate::store::StoreError;

/// What a call does with its connection.
type Work<T, E> = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send>;

impl SqliteStore {
    /// Runs the work in one immediate transaction of the writer: committed when it succeeds, rolled back when not.
    pub(super) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    {
        let transaction: Work<T, E> = Box::new(move |connection| {
            Box::pin(async move {
                let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(from_sqlx)?;
                match work(&mut transaction).await {
                    Ok(value) => transaction.commit().await.map_err(from_sqlx).map(|()| value).map_err(E::from),
                    Err(error) => {
                        // The work's own error says more than a failed rollback; a lost connection rolls back anyway.
                        let _ = transaction.rollback().await;
                        Err(error)
                    }
                }
            })
        });
        self.on_own_task(self.writer.clone(), transaction).await
    }

    /// Runs the work on a reading connection.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        self.on_own_task(self.reader.clone(), Box::new(work)).await
    }

    async fn on_own_task<T, E>(&self, pool: SqlitePool, work: Work<T, E>) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let ends_at = Instant::now() + self.call_deadline;
        let task = self.tasks.spawn(async move {
            let acquired = timeout_at(ends_at, pool.acquire()).await.map_err(|_| too_slow())?;
            let mut connection = acquired.map_err(from_sqlx)?;
            let answer = timeout_at(ends_at, work(&mut connection)).await;
            answer.unwrap_or_else(|_| {
                connection.close_on_drop();
                Err(too_slow().into())
            })
        });
        task.await.unwrap_or_else(|error| {
            let reason = "the call's task did not end".to_owned();
            Err(StoreError::Internal { reason, source: Some(Box::new(error)) }.into())
        })
    }
}

fn too_slow() -> StoreError {
    StoreError::Unavailable { reason: "the database did not answer in time".to_owned(), source: None }
}
