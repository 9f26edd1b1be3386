//! The description of an outbox whose table was there before outboxd: what its columns and status labels are called.
//!
//! It is an operator's, from the settings file, and names only what the database cannot say by itself; types, precisions
//! and enum labels are read from the catalogue. Identifiers and labels of statements come from here and nowhere else. The
//! `filter` is the one piece of SQL that an operator writes himself.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::table::quote_identifier;
use crate::event::Status;

/// An adopted table, described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The outbox's name, by which requests and routes choose it.
    pub name: String,
    /// The table as its operator writes it in SQL: `orders`, `public."NotificationDelivery"`, `"odd ""name"""`.
    pub table: TableName,
    /// What its columns are called.
    pub columns: Columns,
    /// What its statuses are called.
    pub labels: Labels,
    /// The type of all its events, where it has no column of types.
    pub fixed_type: Option<String>,
    /// The column that orders a lane; the due time when `None`.
    pub order_by: Option<String>,
    /// Failed attempts after which an event becomes a dead letter, where the table has no such column.
    pub max_attempts: i32,
    /// The time zone of instants whose columns have none.
    pub time_zone: String,
    /// How instants are kept, on `SQLite`, whose catalogue does not say.
    pub instants: Option<Instants>,
    /// How long a claim lasts.
    pub lease: Duration,
    /// The final states whose settlements write `processed_at`.
    pub processed_at_on: BTreeSet<Status>,
    /// A condition of the operator's own, which every claimed event fulfils.
    pub filter: Option<String>,
}

/// How a `SQLite` table keeps its instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Instants {
    /// Integers since 1970.
    Microseconds,
    /// Integers since 1970.
    Milliseconds,
    /// Integers since 1970.
    Seconds,
    /// `YYYY-MM-DD HH:MM:SS`, with or without a fraction, in UTC: what `CURRENT_TIMESTAMP` gives.
    Text,
    /// `YYYY-MM-DDTHH:MM:SS.SSSZ`.
    Iso,
}

impl Instants {
    /// Whether they are integers.
    #[must_use]
    pub fn is_number(self) -> bool {
        match self {
            Self::Microseconds | Self::Milliseconds | Self::Seconds => true,
            Self::Text | Self::Iso => false,
        }
    }
}

/// A table's name: its parts as the catalogue has them, without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The schema, where it is given; else the search path finds the table.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

/// Names of columns, as the catalogue has them, without quotes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Primary key or unique: `uuid`, text or `bigint`.
    pub id: String,
    /// Absent where all events are of one fixed type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// `json`, `jsonb`, text or `bytea`.
    pub payload: String,
    /// Text, an enum or an integer.
    pub status: String,
    /// Failed attempts.
    pub attempts: String,
    /// When an event is due.
    pub available_at: String,
    /// When it was claimed; NULL while it is not.
    pub locked_at: String,
    /// When its row was written.
    pub created_at: String,
    /// When it reached its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_at: Option<String>,
    /// Why the latest attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The event's own attempts limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<String>,
    /// What the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// An object of strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<String>,
    /// Grows with each claim; where it is absent the instant of the claim tells claims apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_no: Option<String>,
}

impl Columns {
    /// Every column that is described, by its key.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("id", Some(&self.id)),
            ("event_type", self.event_type.as_ref()),
            ("payload", Some(&self.payload)),
            ("status", Some(&self.status)),
            ("attempts", Some(&self.attempts)),
            ("available_at", Some(&self.available_at)),
            ("locked_at", Some(&self.locked_at)),
            ("created_at", Some(&self.created_at)),
            ("processed_at", self.processed_at.as_ref()),
            ("last_error", self.last_error.as_ref()),
            ("max_attempts", self.max_attempts.as_ref()),
            ("subject", self.subject.as_ref()),
            ("headers", self.headers.as_ref()),
            ("claim_no", self.claim_no.as_ref()),
        ];
        all.into_iter().filter_map(|(key, column)| Some((key, column?.as_str()))).collect()
    }
}

/// What the statuses are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// Waits.
    pub pending: String,
    /// Claimed.
    pub processing: String,
    /// Delivered.
    pub completed: String,
    /// Given up.
    pub dead_letter: String,
    /// Not delivered on purpose; a table may have no such label.
    pub skipped: Option<String>,
}

impl Labels {
    /// The label of a status, if the table has it.
    #[must_use]
    pub fn of(&self, status: Status) -> Option<&str> {
        match status {
            Status::Pending => Some(&self.pending),
            Status::Processing => Some(&self.processing),
            Status::Completed => Some(&self.completed),
            Status::DeadLetter => Some(&self.dead_letter),
            Status::Skipped => self.skipped.as_deref(),
            Status::Unknown => None,
        }
    }
}

/// The text is no name of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a table's name as SQL has it: orders, app.orders or app.\"OrderEvent\"")]
pub struct InvalidTableName;

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(formatter, "{}.{}", quote_identifier(schema), quote_identifier(&self.table)),
            None => formatter.write_str(&quote_identifier(&self.table)),
        }
    }
}

impl TableName {
    /// Reads a name as SQL has it: one or two parts, each in double quotes or else lowered to small letters.
    ///
    /// # Errors
    /// [`InvalidTableName`].
    pub fn parse(text: &str) -> Result<Self, InvalidTableName> {
        let (first, rest) = part(text.trim())?;
        match rest.strip_prefix('.') {
            None if rest.is_empty() => Ok(Self { schema: None, table: first }),
            None => Err(InvalidTableName),
            Some(rest) => match part(rest)? {
                (table, "") => Ok(Self { schema: Some(first), table }),
                (_, _) => Err(InvalidTableName),
            },
        }
    }
}

/// One part of a name, and what follows it.
fn part(text: &str) -> Result<(String, &str), InvalidTableName> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|letter: char| !(letter.is_alphanumeric() || "_$".contains(letter))).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let begins_well = name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
        return if begins_well && is_identifier(name) {
            Ok((name.to_lowercase(), rest))
        } else {
            Err(InvalidTableName)
        };
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (before, after) = rest.split_once('"').ok_or(InvalidTableName)?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None if is_identifier(&name) => return Ok((name, after)),
            None => return Err(InvalidTableName),
        }
    }
}

/// Whether a catalogue could hold this name: 1–63 bytes without NUL. Postgres would cut a longer one, and it would then
/// name something else.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    (1..=63).contains(&name.len()) && !name.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(schema: Option<&str>, table: &str) -> TableName {
        TableName { schema: schema.map(str::to_owned), table: table.to_owned() }
    }

    #[test]
    fn names_are_read_as_sql_has_them() {
        assert_eq!(TableName::parse("Orders"), Ok(name(None, "orders")));
        assert_eq!(TableName::parse("app.orders"), Ok(name(Some("app"), "orders")));
        assert_eq!(TableName::parse("public.\"OrderEvent\""), Ok(name(Some("public"), "OrderEvent")));
        assert_eq!(TableName::parse("\"a.b\".\"c\"\"d\""), Ok(name(Some("a.b"), "c\"d")));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in
            ["", ".", "a.", ".a", "a.b.c", "a b", "a;b", "\"a", "\"\"", "1a", "a--", "\"a\"b", "a\0", &"x".repeat(64)]
        {
            assert_eq!(TableName::parse(text), Err(InvalidTableName), "{text:?}");
        }
    }
}
