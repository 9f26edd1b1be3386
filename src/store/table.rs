//! The description of an outbox's table: what its columns and status labels are called.
//!
//! Statements are written as whole texts per database with names in braces, `{available_at}`, `{pending}`, and rendered
//! once when a store is made. Identifiers and labels come from here and nowhere else: validated, quoted, never from a
//! request. Values are always bound.

use std::collections::BTreeMap;

use super::action::OWN_OUTBOX;

/// Identifiers longer than this are cut by Postgres and would then name something else.
const MAX_IDENTIFIER_BYTES: usize = 63;

/// How statements call the tables.
const TABLES: [&str; 6] = ["events", "attempts_log", "runs", "secrets", "actions", "minutes"];

/// The columns of an event table, in the order of the default table.
const COLUMNS: [&str; 21] = [
    "id",
    "event_type",
    "target",
    "subject",
    "payload",
    "headers",
    "idempotency_key",
    "fingerprint",
    "status",
    "attempts",
    "max_attempts",
    "available_at",
    "locked_at",
    "lease_until",
    "claim_no",
    "deferred_since",
    "requeues",
    "created_at",
    "processed_at",
    "dead_at",
    "last_error",
];

/// The status labels of an event table.
const LABELS: [&str; 5] = ["pending", "processing", "completed", "dead_letter", "skipped"];

/// The largest counts that the schema's checks let in. A plain INSERT can bring in a row that is there already: its count
/// stays there, and an event that has no claim number left is never claimed, for it would fail the claim of its neighbours.
const LIMITS: [(&str, &str); 3] =
    [("last_claim_no", "1000000000000000"), ("most_attempts", "1000000"), ("most_requeues", "1000000000")];

/// Names by which statements speak of an outbox.
#[derive(Debug, Clone)]
pub struct Table {
    names: BTreeMap<&'static str, String>,
}

impl Table {
    /// The tables of schema `outbox` that outboxd makes on Postgres.
    #[must_use]
    pub fn postgres() -> Self {
        Self::new([
            &["outbox", "event"],
            &["outbox", "attempt"],
            &["outbox", "run"],
            &["outbox", "secret"],
            &["outbox", "action"],
            &["outbox", "minute"],
        ])
    }

    /// The tables that outboxd makes in a `SQLite` file.
    #[must_use]
    pub fn sqlite() -> Self {
        Self::new([
            &["outbox_event"],
            &["outbox_attempt"],
            &["outbox_run"],
            &["outbox_secret"],
            &["outbox_action"],
            &["outbox_minute"],
        ])
    }

    /// Paths of the tables in the order of [`TABLES`].
    fn new(paths: [&[&str]; 6]) -> Self {
        let mut names = BTreeMap::new();
        for (name, path) in TABLES.into_iter().zip(paths) {
            names.insert(name, path.iter().map(|part| quote_identifier(part)).collect::<Vec<_>>().join("."));
        }
        for column in COLUMNS {
            names.insert(column, quote_identifier(column));
        }
        for label in LABELS {
            names.insert(label, format!("'{}'", label.replace('\'', "''")));
        }
        for (limit, number) in LIMITS {
            names.insert(limit, number.to_owned());
        }
        names.insert("own_outbox", format!("'{OWN_OUTBOX}'"));
        Self { names }
    }

    /// No names yet.
    #[must_use]
    pub fn bare() -> Self {
        Self { names: BTreeMap::new() }
    }

    /// Adds a name of the store's own, such as the expression for the present instant.
    #[must_use]
    pub fn with(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.names.insert(name, text.into());
        self
    }

    /// Puts the names in: `{name}` becomes an identifier, a label or an expression of this table.
    ///
    /// # Panics
    /// When the template names something that this table does not have. Every template is rendered when a store is
    /// made, so this cannot wait for a request.
    #[must_use]
    pub fn render(&self, template: &str) -> String {
        let mut sql = String::with_capacity(template.len() * 2);
        let mut rest = template;
        while let Some((before, from_name)) = rest.split_once('{') {
            sql.push_str(before);
            match from_name.split_once('}') {
                Some((name, after)) if is_name(name) => {
                    let text = self.names.get(name);
                    sql.push_str(text.unwrap_or_else(|| panic!("a statement names {{{name}}}, which no table has")));
                    rest = after;
                }
                Some(_) | None => {
                    sql.push('{');
                    rest = from_name;
                }
            }
        }
        sql.push_str(rest);
        sql
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Quotes an identifier for either database.
pub(in crate::store) fn quote_identifier(name: &str) -> String {
    debug_assert!(!name.is_empty() && name.len() <= MAX_IDENTIFIER_BYTES && !name.contains('\0'), "{name:?}");
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_quoted_identifiers_and_labels() {
        let sql = Table::postgres().render("UPDATE {events} SET {status} = {completed} WHERE {id} = $1");
        assert_eq!(sql, r#"UPDATE "outbox"."event" SET "status" = 'completed' WHERE "id" = $1"#);
    }

    #[test]
    fn braces_that_name_nothing_stay() {
        assert_eq!(Table::sqlite().render("SELECT '{}', '{\"a\":1}'"), "SELECT '{}', '{\"a\":1}'");
    }

    #[test]
    #[should_panic(expected = "{colour}")]
    fn an_unknown_name_is_a_defect() {
        let _ = Table::sqlite().render("SELECT {colour}");
    }

    #[test]
    fn a_quote_cannot_end_an_identifier() {
        assert_eq!(quote_identifier("a\"b"), "\"a\"\"b\"");
    }
}
