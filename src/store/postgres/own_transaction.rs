//! For library users on the same database: enqueue and settle inside a transaction of their own, so that the outbox's
//! row and their effect commit together or not at all. The connections are those of [`crate::sqlx`].

use sqlx::Row;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::event::{Due, NewEvent};
use crate::lease::Lease;
use crate::store::table::Table;

/// Enqueues an event in the caller's transaction through `outbox.enqueue` and returns its id; a replay by key or id
/// returns the id that is there. The event is claimed by nobody before the transaction commits. The database judges less
/// than [`NewEvent::problems`] does: an event with a header that may not be sent is stored, and given up when it is claimed.
///
/// # Errors
/// The driver's, also for a key or id that was used for other content (SQLSTATE 23505). A due instant
/// ([`Due::At`]) is not supported here: give a delay.
pub async fn enqueue_in(connection: &mut PgConnection, event: &NewEvent) -> Result<Uuid, sqlx::Error> {
    let delay_ms = match event.due {
        Due::Now => 0,
        Due::AfterMs(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
        Due::At(_) => return Err(sqlx::Error::Protocol("enqueue_in takes a delay, not an instant".to_owned())),
    };
    let headers = serde_json::json!(event.headers).to_string();
    sqlx::query_scalar(
        "SELECT outbox.enqueue($1, $2::json, $3, $4::bigint * interval '1 millisecond', $5, $6, $7::json, $8)",
    )
    .bind(&event.event_type)
    .bind(&event.payload)
    .bind(&event.subject)
    .bind(delay_ms)
    .bind(event.max_attempts)
    .bind(&event.idempotency_key)
    .bind(headers)
    .bind(event.id)
    .fetch_one(connection)
    .await
}

/// Completes a claimed event in the caller's transaction. False when the lease was lost: the caller must then roll back,
/// for somebody else delivers the event. After a commit the handler returns
/// [`Outcome::Settled`](crate::outcome::Outcome::Settled).
///
/// # Errors
/// The driver's.
pub async fn complete_in(connection: &mut PgConnection, lease: &Lease) -> Result<bool, sqlx::Error> {
    let sql = Table::postgres().render(include_str!("sql/complete.sql"));
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(vec![lease.event_id.uuid()]).bind(vec![lease.claim_no]);
    let row = query.fetch_optional(connection).await?;
    row.map(|row| row.try_get::<Uuid, _>("id")).transpose().map(|id| id.is_some())
}
