//! `[[outbox]]` as it is written: an adopted table's description, word for word.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::config::text::{duration, optional_duration};
use crate::event::DEFAULT_MAX_ATTEMPTS;

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

/// `[outbox.columns]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// The event's id.
    pub id: String,
    /// Its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// What is delivered.
    pub payload: String,
    /// Where it stands.
    pub status: String,
    /// Failed attempts.
    pub attempts: String,
    /// When it is due.
    pub available_at: String,
    /// When it was claimed.
    pub locked_at: String,
    /// When it was written.
    pub created_at: String,
    /// When it reached its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_at: Option<String>,
    /// Why the latest attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Its own attempts limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// An object of strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<String>,
    /// Grows with each claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_no: Option<String>,
}

impl Columns {
    /// Every column that is described, by its key.
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
