//! The statements, rendered once for one table description. Their texts stand whole in `sql/`, one file each.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::store::table::Table;

/// Columns of an event but payload and fingerprint, in the order of [`super::rows::event`]'s names.
const EVENT_COLUMNS: &str = "e.{id}, e.{event_type}, e.{subject}, e.{headers}::text AS headers, e.{idempotency_key}, \
    e.{status}, e.{attempts}, e.{max_attempts}, e.{requeues}, e.{available_at}, e.{locked_at}, e.{lease_until}, \
    e.{claim_no}, e.{deferred_since}, e.{created_at}, e.{processed_at}, e.{dead_at}, e.{last_error}";

/// What a claim returns, in the order in which [`super::rows::claimed`] reads it.
const CLAIMED_COLUMNS: &str = "e.{id}, e.{claim_no}, e.{event_type}, e.{subject}, {readable_payload} AS payload, \
    octet_length(e.{payload}::text) AS payload_bytes, e.{headers}::text AS headers, e.{attempts}, e.{max_attempts}, \
    e.{created_at}, e.{available_at}, \
    (extract(epoch FROM now() - e.{deferred_since}) * 1000)::bigint AS deferred_ms, \
    (extract(epoch FROM now() - e.{available_at}) * 1000000)::bigint AS waited";

macro_rules! statements {
    ($($name:ident),+ $(,)?) => {
        /// Every statement of the store, ready to run.
        pub(super) struct Statements {
            prepared: bool,
            $($name: SqlStr,)+
        }

        impl Statements {
            /// Renders all statements; payloads above `max_payload_bytes` are not read by any of them. When they are
            /// `prepared`, each session keeps their plans under names.
            pub(super) fn new(table: &Table, max_payload_bytes: usize, prepared: bool) -> Self {
                let table = with_fragments(table, max_payload_bytes);
                Self {
                    prepared,
                    $($name: AssertSqlSafe(
                        table.render(include_str!(concat!("sql/", stringify!($name), ".sql")))
                    ).into_sql_str(),)+
                }
            }

            $(pub(super) fn $name(&self) -> Query<'_, Postgres, PgArguments> {
                sqlx::query(self.$name.clone()).persistent(self.prepared)
            })+

            /// The names and texts of all statements, for tests that look at their plans.
            pub(super) fn texts(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), self.$name.as_str().to_owned()),)+]
            }
        }
    };
}

statements!(
    add_minute,
    attempts,
    cancel,
    claim,
    claim_by_id,
    claim_key,
    claim_subject,
    complete,
    dead_letters,
    discard,
    event,
    extend,
    in_flight_payload,
    in_flight_subject,
    insert,
    is_due,
    known,
    minutes,
    peek,
    peek_subject,
    purge,
    reap,
    reap_by_id,
    requeue,
    run,
    run_page,
    save_run,
    settle,
    stats_count,
    stats_lanes,
    survey,
);

/// The parts that several statements share.
fn with_fragments(table: &Table, max_payload_bytes: usize) -> Table {
    let readable =
        format!("CASE WHEN octet_length(e.{{payload}}::text) <= {max_payload_bytes} THEN e.{{payload}}::text END");
    let readable = table.render(&readable);
    let table = table.clone().with("readable_payload", readable);
    let event_columns = table.render(EVENT_COLUMNS);
    let claimed_columns = table.render(CLAIMED_COLUMNS);
    let take_back = table.render(include_str!("sql/take_back.sql").trim_end());
    table.with("event_columns", event_columns).with("claimed_columns", claimed_columns).with("take_back", take_back)
}
