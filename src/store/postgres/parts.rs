//! The parts of schema `outbox`: what the migrations made must still be there.

use sqlx::postgres::PgConnection;

use crate::store::{StoreError, parts};

/// What the migrations make, as [`PRESENT`] and [`KEY`] name it.
const PARTS: [&str; 21] = [
    "table outbox.event",
    "table outbox.attempt",
    "table outbox.run",
    "table outbox.minute",
    "table outbox.secret",
    "table outbox.action",
    KEY_PART,
    "index outbox.event_live",
    "index outbox.event_dead",
    "index outbox.event_dead_by_type",
    "index outbox.event_idempotency_key",
    "index outbox.event_subject",
    "index outbox.event_created_at",
    "index outbox.run_started_at",
    "index outbox.run_idle",
    "function outbox.uuid_v7",
    "function outbox.netstring",
    "function outbox.fingerprint",
    "function outbox.enqueue",
    "function outbox.payload_text",
    "function outbox.in_flight",
];

/// The row without which no claim token can be made.
const KEY_PART: &str = "row claim_token of outbox.secret";

/// Asks the catalogues, which anybody may read, and not for a function's arguments: another default is nobody's loss.
const PRESENT: &str = "
SELECT CASE WHEN relkind IN ('i', 'I') THEN 'index' ELSE 'table' END || ' outbox.' || relname
FROM pg_catalog.pg_class
WHERE relnamespace = to_regnamespace('outbox') AND relkind IN ('r', 'p', 'i', 'I')
UNION ALL
SELECT 'function outbox.' || proname
FROM pg_catalog.pg_proc
WHERE pronamespace = to_regnamespace('outbox')";

const KEY: &str = "SELECT EXISTS (SELECT 1 FROM outbox.secret WHERE name = 'claim_token')";

/// Refuses a schema from which parts are missing.
pub(super) async fn check(connection: &mut PgConnection) -> Result<Result<(), StoreError>, sqlx::Error> {
    let mut present: Vec<String> = sqlx::query_scalar(PRESENT).persistent(false).fetch_all(&mut *connection).await?;
    let has_secrets = present.iter().any(|part| part == "table outbox.secret");
    if has_secrets && sqlx::query_scalar(KEY).persistent(false).fetch_one(connection).await? {
        present.push(KEY_PART.to_owned());
    }
    Ok(parts::require(&PARTS, &present, "drop schema outbox"))
}
