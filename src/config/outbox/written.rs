//! `[[outbox]]` as it is written: an adopted table's description, word for word.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::config::text::{duration, optional_duration};
use crate::event::DEFAULT_MAX_ATTEMPTS;
use crate::store::description::{Columns, Instants};

/// `[[outbox]]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outbox {
    /// By which routes and requests choose it.
    pub name: String,
    /// As SQL has it.
    pub table: String,
    /// The column that orders a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_by: Option<String>,
    /// Where the table has no such column, or NULL in it.
    #[serde(default = "default_max_attempts")]
    pub max_attempts: i32,
    /// Of columns without one.
    #[serde(default = "default_time_zone")]
    pub time_zone: String,
    /// How a `SQLite` table keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instants: Option<Instants>,
    /// How long a claim lasts.
    #[serde(default = "default_lease", with = "duration")]
    pub lease: Duration,
    /// Which settlements write `processed_at`; all final ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processed_at_on: Option<Vec<String>>,
    /// The operator's own condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Instead of a column of types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_type: Option<String>,
    /// What the columns are called.
    pub columns: Columns,
    /// What the statuses are called.
    pub status: Status,
    /// Nothing is deleted without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// `[outbox.status]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Waits.
    pub pending: Label,
    /// Claimed.
    pub processing: Label,
    /// Delivered.
    pub completed: Label,
    /// Given up.
    pub dead_letter: Label,
    /// Not delivered on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Label>,
}

impl Status {
    /// Every label, by its key.
    pub fn named(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("pending", Some(&self.pending)),
            ("processing", Some(&self.processing)),
            ("completed", Some(&self.completed)),
            ("dead_letter", Some(&self.dead_letter)),
            ("skipped", self.skipped.as_ref()),
        ];
        all.into_iter().filter_map(|(key, label)| Some((key, label?.0.as_str()))).collect()
    }
}

/// A status label: text, or an integer as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Label(pub String);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrInteger;
        impl Visitor<'_> for TextOrInteger {
            type Value = Label;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a label as text or as a whole number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Label, E> {
                Ok(Label(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Label, E> {
                Ok(Label(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Label, E> {
                Ok(Label(number.to_string()))
            }
        }
        deserializer.deserialize_any(TextOrInteger)
    }
}

/// `[outbox.retention]`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Of completed events; they are kept when absent.
    #[serde(with = "optional_duration", skip_serializing_if = "Option::is_none")]
    pub completed: Option<Duration>,
    /// Of skipped events; they are kept when absent.
    #[serde(with = "optional_duration", skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Duration>,
}

fn default_max_attempts() -> i32 {
    DEFAULT_MAX_ATTEMPTS
}

fn default_time_zone() -> String {
    "UTC".to_owned()
}

fn default_lease() -> Duration {
    Duration::from_mins(10)
}
