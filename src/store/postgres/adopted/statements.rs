//! The statements of one adopted table. Their texts stand in `sql/`, one file each.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::AdoptedStore;
use super::fit::{Fit, IdKind, PayloadKind};
use super::names::{NEVER, names};
use crate::store::StoreError;
use crate::store::postgres::call::ADOPTED_SETTINGS;

macro_rules! statements {
    ($($name:ident),+ $(,)?) => {
        /// Every statement, ready to run, and what their callers have to know of the table.
        pub(super) struct Statements {
            prepared: bool,
            pub(super) id_kind: IdKind,
            pub(super) payload_kind: PayloadKind,
            pub(super) has_subject: bool,
            pub(super) has_headers: bool,
            pub(super) has_skipped: bool,
            /// Whether an index leads from each status to the types.
            pub(super) counts_by_index: bool,
            pub(super) has_max_attempts: bool,
            /// Whether rows may lack what makes them claimable.
            pub(super) has_unreadable: bool,
            pub(super) limitations: Vec<String>,
            $($name: SqlStr,)+
        }

        impl Statements {
            /// Renders all statements.
            pub(super) fn new(fit: &Fit<'_>, max_payload_bytes: usize, prepared: bool) -> Self {
                let names = names(fit, max_payload_bytes);
                let columns = &fit.outbox.columns;
                Self {
                    prepared,
                    id_kind: fit.id_kind(),
                    payload_kind: fit.payload_kind(),
                    has_subject: columns.subject.is_some(),
                    has_headers: columns.headers.is_some(),
                    counts_by_index: fit.has_status_index(),
                    has_skipped: fit.outbox.labels.skipped.is_some(),
                    has_max_attempts: columns.max_attempts.is_some(),
                    has_unreadable: names.render("{never_claimable}") != NEVER,
                    limitations: fit.limitations(),
                    $($name: AssertSqlSafe(
                        names.render(include_str!(concat!("sql/", stringify!($name), ".sql")))
                    ).into_sql_str(),)+
                }
            }

            /// Whether a pooler in transaction mode stands between, so that each call is one transaction.
            pub(super) fn pooled(&self) -> bool {
                !self.prepared
            }

            /// Every statement's name and text.
            pub(super) fn texts(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), self.$name.as_str().to_owned()),)+]
            }

            $(pub(super) fn $name(&self) -> Query<'_, Postgres, PgArguments> {
                sqlx::query(self.$name.clone()).persistent(self.prepared)
            })+
        }
    };
}

statements!(
    actions,
    bury_unreadable,
    cancel,
    claim,
    claim_by_id,
    claim_lane,
    claim_subject,
    dead_among,
    dead_letters,
    discard,
    discard_many,
    event,
    events,
    events_rising,
    expired,
    expired_types,
    extend,
    find_dead,
    in_flight_payload,
    in_flight_subject,
    insert,
    insert_new,
    is_due,
    payloads,
    peek,
    peek_subject,
    purge,
    read_many,
    reap,
    reap_by_id,
    requeue,
    requeue_many,
    settle,
    stats_count,
    stats_grouped,
    stats_lanes,
    survey,
);

impl AdoptedStore {
    /// Every statement's name and text, for whoever looks at their plans.
    ///
    /// # Errors
    /// The catalogue cannot be read, or the description does not fit.
    #[doc(hidden)]
    pub async fn texts(&self) -> Result<Vec<(&'static str, String)>, StoreError> {
        Ok(self.statements().await?.texts())
    }

    /// What is set in every session of such a store.
    #[doc(hidden)]
    #[must_use]
    pub fn session_settings() -> [(&'static str, &'static str); 5] {
        ADOPTED_SETTINGS
    }
}
