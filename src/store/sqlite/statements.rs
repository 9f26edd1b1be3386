//! Every statement of the store, its names put in once. The texts stand beside the functions that run them.

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::row::{CLAIMED_COLUMNS, EVENT_COLUMNS};
use super::{
    actions, bulk, claim, dead_letters, enqueue, inspect, lists, purge, reap, runs, settle, stats, survey, transition,
};
use crate::store::table::Table;

/// The present instant in microseconds. It does not move within a statement. The old functions serve: the application's
/// `SQLite`, which runs the same expression as a column's default, may not know `subsec`.
pub(super) const NOW: &str = "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 \
    + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)";

/// The index of the primary key. Named, because statistics of an empty table would have the whole table scanned.
const BY_ID: &str = "sqlite_autoindex_outbox_event_1";

macro_rules! statements {
    ($($name:ident: $template:expr,)*) => {
        /// The statements by name, ready to run.
        #[derive(Debug)]
        pub(super) struct Statements {
            $(pub(super) $name: SqlStr,)*
        }

        impl Statements {
            /// Renders every statement for the tables that outboxd makes in a `SQLite` file.
            pub(super) fn new() -> Self {
                let table = Table::sqlite().with("now", NOW).with("by_id", BY_ID);
                let table = table
                    .clone()
                    .with("event_columns", table.render(EVENT_COLUMNS))
                    .with("claimed_columns", table.render(CLAIMED_COLUMNS))
                    .with("listed_columns", table.render(lists::LISTED_COLUMNS));
                Self { $($name: AssertSqlSafe(table.render($template)).into_sql_str(),)* }
            }

            /// The names and texts of all statements, for those who look at their plans or measure them.
            pub(super) fn texts(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), self.$name.as_str().to_owned()),)*]
            }
        }
    };
}

statements! {
    survey: survey::SURVEY,
    peek: survey::PEEK,
    peek_subject: survey::PEEK_SUBJECT,
    claim_lane: claim::CLAIM_LANE,
    claim_subject: claim::CLAIM_SUBJECT,
    claim_by_id: claim::CLAIM_BY_ID,
    is_due: claim::IS_DUE,
    settle_attempts: settle::ATTEMPTS,
    lost: settle::LOST,
    complete: settle::COMPLETE,
    settle: settle::SETTLE,
    extend: settle::EXTEND,
    reap_page: reap::PAGE,
    reap_attempts: reap::ATTEMPTS,
    reap: reap::REAP,
    reap_find: reap::FIND,
    enqueue: enqueue::INSERT,
    enqueue_by_key: enqueue::BY_KEY,
    enqueue_by_id: enqueue::BY_ID,
    claim_key: inspect::CLAIM_KEY,
    event: inspect::EVENT,
    attempts: inspect::ATTEMPTS,
    in_flight_subject: inspect::IN_FLIGHT_SUBJECT,
    in_flight_payload: inspect::IN_FLIGHT_PAYLOAD,
    cancel: transition::CANCEL,
    requeue: transition::REQUEUE,
    discard: transition::DISCARD,
    action_note: actions::NOTE,
    actions: actions::READ,
    requeue_many: bulk::REQUEUE,
    discard_many: bulk::DISCARD,
    dead_letters_among: bulk::AMONG,
    dead_letters: dead_letters::SCAN,
    dead_letters_of_type: dead_letters::SCAN_TYPE,
    events_falling: lists::FALLING,
    events_rising: lists::RISING,
    events_live: lists::LIVE,
    events_live_of_types: lists::LIVE_OF_TYPES,
    events_dead: lists::DEAD,
    events_dead_of_types: lists::DEAD_OF_TYPES,
    events_of_subject: lists::OF_SUBJECT,
    events_read: lists::READ,
    purge_find: purge::FIND,
    purge_attempts: purge::ATTEMPTS,
    purge_actions: purge::ACTIONS,
    purge: purge::PURGE,
    run_save: runs::SAVE,
    run_forget: runs::FORGET,
    run: runs::RUN,
    runs: runs::RUNS,
    stats_lanes: stats::LANES,
    stats_count: stats::COUNT,
    minute_add: stats::ADD_MINUTE,
    minutes_forget: stats::FORGET_MINUTES,
    minutes: stats::MINUTES,
}
