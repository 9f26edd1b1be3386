//! The statements of one adopted table. Their texts stand in `sql/`, one file each.

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::fit::{Fit, IdKind};
use super::instants::Form;
use super::names::names;

/// A statement that waits for its values.
pub(super) type Prepared = Query<'static, Sqlite, SqliteArguments>;

macro_rules! statements {
    ($($name:ident),+ $(,)?) => {
        /// Every statement, ready to run, and what their callers have to know of the table.
        #[derive(Debug)]
        pub(super) struct Statements {
            pub(super) id_kind: IdKind,
            /// Whether the database gives an event its id where nobody else does.
            pub(super) gives_ids: bool,
            pub(super) due_form: Form,
            pub(super) payload_column: String,
            pub(super) has_subject: bool,
            pub(super) has_headers: bool,
            pub(super) has_skipped: bool,
            pub(super) has_max_attempts: bool,
            pub(super) limitations: Vec<String>,
            find_lanes: SqlStr,
            $($name: SqlStr,)+
        }

        impl Statements {
            /// Renders all statements.
            pub(super) fn new(fit: &Fit<'_>) -> Self {
                let names = names(fit);
                let columns = &fit.outbox.columns;
                let find_lanes = match &columns.event_type {
                    None => include_str!("sql/lane_of_all.sql"),
                    Some(_) if fit.has_lane_index() => include_str!("sql/lanes_by_index.sql"),
                    Some(_) => include_str!("sql/lanes.sql"),
                };
                Self {
                    id_kind: fit.id_kind,
                    gives_ids: fit.gives_ids(),
                    due_form: fit.form(&columns.available_at),
                    payload_column: columns.payload.clone(),
                    has_subject: columns.subject.is_some(),
                    has_headers: columns.headers.is_some(),
                    has_skipped: fit.outbox.labels.skipped.is_some(),
                    has_max_attempts: columns.max_attempts.is_some(),
                    limitations: fit.limitations(),
                    find_lanes: AssertSqlSafe(names.render(find_lanes)).into_sql_str(),
                    $($name: AssertSqlSafe(
                        names.render(include_str!(concat!("sql/", stringify!($name), ".sql")))
                    ).into_sql_str(),)+
                }
            }

            /// The types with something pending.
            pub(super) fn find_lanes(&self) -> Prepared {
                sqlx::query(self.find_lanes.clone())
            }

            $(pub(super) fn $name(&self) -> Prepared {
                sqlx::query(self.$name.clone())
            })+

            /// The names and texts of all statements, for those who look at their plans.
            #[cfg(test)]
            pub(super) fn texts(&self) -> Vec<(&'static str, String)> {
                let lanes = ("find_lanes", self.find_lanes.as_str().to_owned());
                vec![lanes, $((stringify!($name), self.$name.as_str().to_owned()),)+]
            }
        }
    };
}

statements!(
    bury_claimed,
    bury_unreadable,
    cancel,
    claim_by_id,
    claim_lane,
    claim_subject,
    dead_among,
    dead_letters,
    discard,
    event,
    events,
    events_rising,
    expired,
    expired_types,
    extend,
    find_dead,
    front,
    front_of_subject,
    in_flight_payload,
    in_flight_subject,
    insert,
    insert_new,
    is_due,
    note,
    present,
    purge,
    purge_find,
    purge_notes,
    read_notes,
    reap,
    reap_by_id,
    requeue,
    sample,
    settle,
    stats,
    unreadable,
);
