//! The example of the library's use does what it says: it is compiled in here and its effects are read back in SQL.

#[allow(dead_code, reason = "its main is for cargo run")]
#[path = "../../examples/custom_handler.rs"]
mod custom_handler;

use std::time::Duration;

use outboxd::handler::{Delivery, Handler};
use outboxd::outcome::Outcome;
use outboxd::run::StopReason;
use outboxd::store::{self, StoreOptions};
use sqlx::{PgPool, Row};
use uuid::Uuid;

use self::custom_handler::{BookInvoice, create_business_tables, create_invoice, run};
use super::support::postgres::fresh_database;

/// For each customer with an invoice: its event's status and attempts, and what is booked of it.
async fn invoices(pool: &PgPool) -> Vec<(String, i64, String, i32, Option<i64>)> {
    let rows = sqlx::query(
        "SELECT invoice.customer, invoice.amount, event.status, event.attempts, booking.amount AS booked
         FROM outboxd_example.invoice
         JOIN outbox.event ON event.payload ->> 'number' = invoice.number::text
         LEFT JOIN outboxd_example.booking ON booking.invoice = invoice.number
         ORDER BY invoice.number",
    );
    let read = |row: &sqlx::postgres::PgRow| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4));
    rows.fetch_all(pool).await.unwrap().iter().map(read).collect()
}

async fn number(pool: &PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

fn invoice(
    customer: &str,
    amount: i64,
    status: &str,
    attempts: i32,
    booked: Option<i64>,
) -> (String, i64, String, i32, Option<i64>) {
    (customer.to_owned(), amount, status.to_owned(), attempts, booked)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_books_and_settles_together_or_not_at_all() {
    let url = fresh_database().await;

    let report = run(&url).await.unwrap();

    assert_eq!((report.claimed, report.completed, report.retried), (3, 2, 1), "{report:?}");
    assert_eq!(report.stop_reason, Some(StopReason::Drained));
    let pool = PgPool::connect(&url).await.unwrap();
    assert_eq!(
        invoices(&pool).await,
        [
            invoice("alice", 120, "completed", 0, Some(120)),
            invoice("alice", 30, "completed", 0, Some(30)),
            invoice("carol", 99, "pending", 1, None),
        ]
    );
    let balance = "SELECT balance FROM outboxd_example.account WHERE customer = 'alice'";
    assert_eq!(number(&pool, balance).await, -150);
    let reason: String = sqlx::query_scalar("SELECT last_error FROM outbox.event WHERE status = 'pending'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(reason, "the customer has no account");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_application_transaction_leaves_no_event() {
    let url = fresh_database().await;
    store::connect(&StoreOptions::new(&url)).await.unwrap().migrate().await.unwrap();
    let pool = PgPool::connect(&url).await.unwrap();
    create_business_tables(&pool).await.unwrap();

    let mut transaction = pool.begin().await.unwrap();
    create_invoice(&mut transaction, "bob", 500).await.unwrap();
    let seen_inside: i64 =
        sqlx::query_scalar("SELECT count(*) FROM outbox.event").fetch_one(&mut *transaction).await.unwrap();
    transaction.rollback().await.unwrap();

    assert_eq!(seen_inside, 1);
    assert_eq!(number(&pool, "SELECT count(*) FROM outbox.event").await, 0);
    assert_eq!(number(&pool, "SELECT count(*) FROM outboxd_example.invoice").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_whose_lease_was_lost_leaves_no_effect() {
    let url = fresh_database().await;
    let store = store::connect(&StoreOptions::new(&url)).await.unwrap();
    store.migrate().await.unwrap();
    let pool = PgPool::connect(&url).await.unwrap();
    create_business_tables(&pool).await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    create_invoice(&mut connection, "bob", 500).await.unwrap();
    let id: Uuid = sqlx::query_scalar("SELECT id FROM outbox.event").fetch_one(&pool).await.unwrap();
    let late = store.claim_by_id(&id.into(), Duration::ZERO).await.unwrap().unwrap();
    store.reap_by_id(&id.into()).await.unwrap().unwrap();
    let owner = store.claim_by_id(&id.into(), Duration::from_secs(60)).await.unwrap().unwrap();
    let handler = BookInvoice { pool: pool.clone() };

    let outcome = handler.handle(&Delivery::start(late, Duration::from_secs(5))).await;
    assert_eq!(outcome, Outcome::retry("the lease was lost"));
    assert_eq!(number(&pool, "SELECT count(*) FROM outboxd_example.booking").await, 0);
    assert_eq!(number(&pool, "SELECT balance FROM outboxd_example.account WHERE customer = 'bob'").await, 0);

    let outcome = handler.handle(&Delivery::start(owner, Duration::from_secs(5))).await;
    assert_eq!(outcome, Outcome::Settled);
    assert_eq!(invoices(&pool).await, [invoice("bob", 500, "completed", 1, Some(500))]);
}
