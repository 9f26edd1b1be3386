//! Calls that share a transaction: what one of them does wrong is its own affair.

use std::future::pending;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use sqlx::SqliteConnection;
use tokio::sync::oneshot;

use super::SqliteStore;
use super::error::from_sqlx;
use crate::store::{Store as _, StoreError, StoreOptions};

type Answer<'a> = BoxFuture<'a, Result<(), StoreError>>;

async fn store(directory: &tempfile::TempDir, call_deadline: Duration) -> SqliteStore {
    let url = format!("sqlite://{}", directory.path().join("outbox.db").display());
    let store = SqliteStore::open(&StoreOptions { call_deadline, ..StoreOptions::new(url) }).await.unwrap();
    store.migrate().await.unwrap();
    store
}

const PATIENT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

async fn insert_into(connection: &mut SqliteConnection, event_type: &'static str) -> Result<(), StoreError> {
    let insert = sqlx::query("INSERT INTO outbox_event (event_type, payload) VALUES (?1, '1')").bind(event_type);
    insert.execute(connection).await.map(|_| ()).map_err(from_sqlx)
}

fn insert<'a>(store: &'a SqliteStore, event_type: &'static str) -> Answer<'a> {
    store.write(move |connection| insert_into(connection, event_type).boxed()).boxed()
}

/// Writes something and then fails.
fn fail<'a>(store: &'a SqliteStore, event_type: &'static str) -> Answer<'a> {
    store
        .write(move |connection| {
            async move {
                insert_into(connection, event_type).await?;
                insert_into(connection, "no type").await
            }
            .boxed()
        })
        .boxed()
}

/// What has been committed.
async fn committed(store: &SqliteStore) -> Vec<String> {
    let types = sqlx::query_scalar("SELECT event_type FROM outbox_event ORDER BY event_type");
    types.fetch_all(&store.reader).await.unwrap()
}

/// Runs the calls in this order behind one that holds the writer until all of them wait.
async fn together<'a>(store: &'a SqliteStore, calls: Vec<Answer<'a>>) -> Vec<Result<(), StoreError>> {
    let (open, gate) = oneshot::channel::<()>();
    let holds: Answer = store
        .write(|_| {
            async {
                gate.await.unwrap();
                Ok(())
            }
            .boxed()
        })
        .boxed();
    let mut all: Vec<Answer> = vec![holds];
    all.extend(calls);
    let opens = async {
        open.send(()).unwrap();
        Ok(())
    };
    all.push(opens.boxed());
    let mut answers = join_all(all).await;
    answers.pop();
    answers.remove(0).ok();
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_together_share_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, PATIENT).await;
    let reader = store.reader.clone();
    let looks_around: Answer = store
        .write(move |connection| {
            async move {
                let count = "SELECT count(*) FROM outbox_event";
                let inside: i64 = sqlx::query_scalar(count).fetch_one(connection).await.unwrap();
                let outside: i64 = sqlx::query_scalar(count).fetch_one(&reader).await.unwrap();
                assert_eq!((inside, outside), (2, 0));
                Ok(())
            }
            .boxed()
        })
        .boxed();
    let calls = vec![insert(&store, "a"), insert(&store, "b"), looks_around];
    assert!(together(&store, calls).await.iter().all(Result::is_ok));
    assert_eq!(committed(&store).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_takes_back_only_what_it_did_itself() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, PATIENT).await;
    let answers = together(&store, vec![insert(&store, "a"), fail(&store, "b"), insert(&store, "c")]).await;
    assert!(matches!(answers.as_slice(), [Ok(()), Err(StoreError::Data { .. }), Ok(())]), "{answers:?}");
    assert_eq!(committed(&store).await, ["a", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_call_that_fails_does_not_hold_up_those_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, PATIENT).await;
    let answers = join_all([fail(&store, "a"), insert(&store, "b"), insert(&store, "c")]).await;
    assert!(matches!(answers.as_slice(), [Err(StoreError::Data { .. }), Ok(()), Ok(())]), "{answers:?}");
    assert_eq!(committed(&store).await, ["b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_panics_fails_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, PATIENT).await;
    let panics: Answer = store.write(|_| async { panic!("a defect") }.boxed()).boxed();
    let answers = together(&store, vec![insert(&store, "a"), panics, insert(&store, "b")]).await;
    assert!(matches!(answers.as_slice(), [Ok(()), Err(StoreError::Internal { .. }), Ok(())]), "{answers:?}");
    assert_eq!(committed(&store).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_caller_has_gone_is_written_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, PATIENT).await;
    let goes: Answer = async {
        assert!(insert(&store, "gone").now_or_never().is_none());
        Ok(())
    }
    .boxed();
    assert!(together(&store, vec![goes, insert(&store, "here")]).await.iter().all(Result::is_ok));
    assert_eq!(committed(&store).await, ["gone", "here"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_the_whole_transaction_fails_all_for_now_and_commits_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, PATIENT).await;
    // As a full disk would.
    let ends: Answer = store
        .write(|connection| {
            async move { sqlx::raw_sql("ROLLBACK").execute(connection).await.map(|_| ()).map_err(from_sqlx) }.boxed()
        })
        .boxed();
    let answers = together(&store, vec![insert(&store, "a"), ends]).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(StoreError::is_transient)), "{answers:?}");
    assert_eq!(committed(&store).await, Vec::<String>::new());
    insert(&store, "after").await.unwrap();
    assert_eq!(committed(&store).await, ["after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_leaves_no_transaction_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, SHORT).await;
    let hangs: Answer = store
        .write(|connection| {
            async move {
                insert_into(connection, "a").await?;
                pending().await
            }
            .boxed()
        })
        .boxed();
    let answer = hangs.await;
    assert!(answer.as_ref().is_err_and(StoreError::is_transient), "{answer:?}");
    sqlx::query("INSERT INTO outbox_event (event_type, payload) VALUES ('b', '1')")
        .execute(&store.reader)
        .await
        .unwrap();
    assert_eq!(committed(&store).await, ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_store_answers_that_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, PATIENT).await;
    store.close().await;
    let error = insert(&store, "a").await.unwrap_err();
    assert_eq!(error.to_string(), "the database is unavailable: the store is closed");
}
