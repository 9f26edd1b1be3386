//! outboxd as a library: events handled in your own process, on Postgres.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@localhost/test cargo run --example custom_handler
//! ```
//!
//! It makes a schema `outboxd_example` with a few business tables, and the outbox's own schema beside it. Then it shows
//! the three things that make an outbox worth having:
//!
//! 1. [`create_invoice`] writes business rows and their event in **one transaction**: both or neither.
//! 2. [`BookInvoice`] handles an event and settles it in **one transaction** too, so that its effect happens once, even
//!    when the event is delivered twice.
//! 3. [`run`] makes **one bounded pass** over what is due. Your scheduler calls such a function; nothing stays resident.

#![allow(clippy::missing_errors_doc, reason = "what can go wrong here is what the database says")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use outboxd::event::NewEvent;
use outboxd::handler::{Delivery, Handler, Registry, Route};
use outboxd::outcome::Outcome;
use outboxd::processor::{Processor, ProcessorSettings, RunRequest};
use outboxd::run::{RunReport, Trigger};
use outboxd::store::{self, StoreOptions, postgres};
// The same sqlx that outboxd uses; a program of your own can take it from `outboxd::sqlx`.
use sqlx::{PgConnection, PgPool};

/// The type of the events that this program writes and handles.
pub const INVOICE_CREATED: &str = "example.invoice.created";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("DATABASE_URL").unwrap_or_default();
    ensure!(
        url.starts_with("postgres"),
        "this example needs a Postgres database: set DATABASE_URL to one that may be written to, such as \
         postgres://user:password@localhost/test"
    );
    let report = run(&url).await?;
    println!("claimed {}, completed {}, retried {}", report.claimed, report.completed, report.retried);
    if let Some(due) = report.next_due_at {
        println!("the next event is due at {due}: call it again then, and see `SELECT * FROM outbox.event`");
    }
    Ok(())
}

/// Puts the parts together, writes some events and makes one bounded pass.
pub async fn run(url: &str) -> anyhow::Result<RunReport> {
    // The outbox lives in your database. Its store has connections of its own.
    let store = store::connect(&StoreOptions::new(url)).await?;
    store.migrate().await.context("the outbox's schema could not be made")?;

    let pool = PgPool::connect(url).await.context("the database does not answer")?;
    create_business_tables(&pool).await?;
    do_business(&pool).await?;

    // Which handler takes which event types. A route also says how long one attempt may take and how it is retried.
    let handler = Arc::new(BookInvoice { pool: pool.clone() });
    let mut route = Route::new("bookkeeping", vec![INVOICE_CREATED.parse()?], handler);
    route.timeout = Duration::from_secs(5);
    let registry = Registry::new(vec![route])?;
    let processor = Processor::new(store, registry, ProcessorSettings::default())?;

    // At most 100 events and 50 seconds, unless `request.budget` says otherwise. Runs may overlap, here and elsewhere.
    let request = RunRequest::new(Trigger::Cli);
    let report = processor.run(request).await?;

    // Waits for what is still under way, as you would on SIGTERM.
    processor.shut_down(Duration::from_secs(10)).await;
    processor.store().close().await;
    pool.close().await;
    Ok(report)
}

/// Everyday business: each of these transactions leaves its invoice and its event, or nothing.
async fn do_business(pool: &PgPool) -> anyhow::Result<()> {
    let mut transaction = pool.begin().await?;
    create_invoice(&mut transaction, "alice", 120).await?;
    transaction.commit().await?;

    let mut transaction = pool.begin().await?;
    create_invoice_in_plain_sql(&mut transaction, "alice", 30).await?;
    transaction.commit().await?;

    // Nobody called carol has an account: the handler fails, and the event is tried again later.
    let mut transaction = pool.begin().await?;
    create_invoice(&mut transaction, "carol", 99).await?;
    transaction.commit().await?;

    // The customer has changed his mind. With the invoice goes the event.
    let mut transaction = pool.begin().await?;
    create_invoice(&mut transaction, "bob", 500).await?;
    transaction.rollback().await?;
    Ok(())
}

/// Writes an invoice, and the event that tells the world of it, in the caller's transaction.
pub async fn create_invoice(connection: &mut PgConnection, customer: &str, amount: i64) -> sqlx::Result<i64> {
    let number = insert_invoice(connection, customer, amount).await?;
    let event = NewEvent {
        // What the event is about, to find it by.
        subject: Some(format!("invoice/{number}")),
        // Should this be called again for the same invoice, no second event is made.
        idempotency_key: Some(format!("invoice/{number}/created")),
        ..NewEvent::new(INVOICE_CREATED, payload(number, customer, amount))
    };
    postgres::enqueue_in(connection, &event).await?;
    Ok(number)
}

/// The same without any library, as a program in another language would do it: one INSERT, two columns.
pub async fn create_invoice_in_plain_sql(
    connection: &mut PgConnection,
    customer: &str,
    amount: i64,
) -> sqlx::Result<i64> {
    let number = insert_invoice(connection, customer, amount).await?;
    sqlx::query("INSERT INTO outbox.event (event_type, payload) VALUES ($1, $2::json)")
        .bind(INVOICE_CREATED)
        .bind(payload(number, customer, amount))
        .execute(connection)
        .await?;
    Ok(number)
}

async fn insert_invoice(connection: &mut PgConnection, customer: &str, amount: i64) -> sqlx::Result<i64> {
    sqlx::query_scalar("INSERT INTO outboxd_example.invoice (customer, amount) VALUES ($1, $2) RETURNING number")
        .bind(customer)
        .bind(amount)
        .fetch_one(connection)
        .await
}

fn payload(number: i64, customer: &str, amount: i64) -> String {
    serde_json::json!({ "number": number, "customer": customer, "amount": amount }).to_string()
}

/// Books each invoice on its customer's account.
pub struct BookInvoice {
    /// The application's own connections.
    pub pool: PgPool,
}

#[async_trait]
impl Handler for BookInvoice {
    async fn handle(&self, delivery: &Delivery) -> Outcome {
        // Whatever goes wrong drops the transaction, and so undoes it, before the outcome says that it is to be tried
        // again. The text is stored with the event and logged: no secrets and no personal data in it.
        self.book(delivery).await.unwrap_or_else(|error| Outcome::retry(error.to_string()))
    }
}

impl BookInvoice {
    async fn book(&self, delivery: &Delivery) -> anyhow::Result<Outcome> {
        let Ok(invoice) = serde_json::from_str::<serde_json::Value>(delivery.payload()) else {
            // No further attempt can help: give it up at once.
            return Ok(Outcome::DeadLetter { error: "the payload is not an invoice".to_owned() });
        };
        let (number, amount) = (invoice["number"].as_i64(), invoice["amount"].as_i64());

        let mut transaction = self.pool.begin().await?;
        sqlx::query("INSERT INTO outboxd_example.booking (invoice, amount) VALUES ($1, $2)")
            .bind(number)
            .bind(amount)
            .execute(&mut *transaction)
            .await?;
        let account = sqlx::query("UPDATE outboxd_example.account SET balance = balance - $2 WHERE customer = $1")
            .bind(invoice["customer"].as_str())
            .bind(amount)
            .execute(&mut *transaction)
            .await?;
        ensure!(account.rows_affected() == 1, "the customer has no account");

        // The lease proves that the event is still ours. If it is not, another worker has it, or had it, and books.
        if !postgres::complete_in(&mut transaction, &delivery.event.lease).await? {
            transaction.rollback().await?;
            return Ok(Outcome::retry("the lease was lost"));
        }
        transaction.commit().await?;
        // Effect and settlement are in: nothing is left for outboxd to write.
        Ok(Outcome::Settled)
    }
}

/// Tables that you would have already.
pub async fn create_business_tables(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::raw_sql(
        "CREATE SCHEMA IF NOT EXISTS outboxd_example;
         CREATE TABLE IF NOT EXISTS outboxd_example.account (
             customer text PRIMARY KEY,
             balance bigint NOT NULL DEFAULT 0
         );
         CREATE TABLE IF NOT EXISTS outboxd_example.invoice (
             number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
             customer text NOT NULL,
             amount bigint NOT NULL
         );
         CREATE TABLE IF NOT EXISTS outboxd_example.booking (
             invoice bigint PRIMARY KEY REFERENCES outboxd_example.invoice,
             amount bigint NOT NULL
         );
         INSERT INTO outboxd_example.account (customer) VALUES ('alice'), ('bob') ON CONFLICT DO NOTHING",
    )
    .execute(pool)
    .await?;
    Ok(())
}
