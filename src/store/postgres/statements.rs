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
    actions,
    add_minute,
    attempts,
    cancel,
    claim,
    claim_by_id,
    claim_key,
    claim_subject,
    complete,
    dead_among,
    discard,
    discard_many,
    event,
    extend,
    find_dead,
    find_dead_of_types,
    find_events,
    find_events_dead,
    find_events_dead_of_types,
    find_events_live,
    find_events_live_of_types,
    find_events_rising,
    find_events_subject,
    in_flight_payload,
    in_flight_subject,
    insert,
    is_due,
    known,
    minutes,
    peek,
    peek_subject,
    purge,
    read_many,
    reap,
    reap_by_id,
    requeue,
    requeue_many,
    run,
    run_page,
    save_run,
    settle,
    stats_count,
    stats_lanes,
    survey,
);

/// What the lists of events look at.
const LISTED_COLUMNS: &str = "e.{id} AS id, e.{status} AS status, e.{event_type} AS event_type, e.{subject} AS subject, \
    e.{created_at} AS created_at";

/// The parts that several statements share.
fn with_fragments(table: &Table, max_payload_bytes: usize) -> Table {
    let readable =
        format!("CASE WHEN octet_length(e.{{payload}}::text) <= {max_payload_bytes} THEN e.{{payload}}::text END");
    let readable = table.render(&readable);
    let table = table.clone().with("readable_payload", readable);
    let event_columns = table.render(EVENT_COLUMNS);
    let claimed_columns = table.render(CLAIMED_COLUMNS);
    let listed_columns = table.render(LISTED_COLUMNS);
    let part = |text: &str| table.render(text.trim_end());
    table
        .clone()
        .with("event_columns", event_columns)
        .with("claimed_columns", claimed_columns)
        .with("listed_columns", listed_columns)
        .with("take_back", part(include_str!("sql/take_back.sql")))
        .with("requeued", part(include_str!("sql/requeued.sql")))
        .with("discarded", part(include_str!("sql/discarded.sql")))
        .with("found_events", part(include_str!("sql/found_events.sql")))
}
