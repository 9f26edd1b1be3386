//! The description that is proposed for a table, with what was guessed and what is missing.

use std::collections::BTreeMap;

use serde::Serialize;

use super::columns::{self, Role};
use super::facts::{Facts, Kind, Sampled};
use super::{labels, notes};
use crate::event::Status;
use crate::store::table::quote_identifier;

/// Something that was found, and why it should be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// A column's name or a status' label.
    pub value: String,
    /// Present where it was guessed.
    pub remark: Option<String>,
}

/// A proposed description.
#[derive(Debug, Clone, Serialize)]
pub struct Proposal {
    /// The outbox's name.
    pub name: String,
    /// The table, as SQL writes it.
    pub table: String,
    /// The columns that were found.
    pub columns: BTreeMap<Role, Found>,
    /// The labels that were found.
    #[serde(serialize_with = "by_words")]
    pub labels: BTreeMap<Status, Found>,
    /// The type of all events, where no column holds types.
    pub fixed_type: Option<String>,
    /// Whether some instants have no time zone.
    pub needs_time_zone: bool,
    /// What the operator should know before he uses it.
    pub notes: Vec<String>,
}

impl Proposal {
    /// Proposes what the facts suggest.
    pub(super) fn new(facts: &Facts, columns: BTreeMap<Role, Found>, sample: &[Sampled]) -> Self {
        let status = columns.get(&Role::Status).and_then(|found| facts.column(&found.value));
        let labels = status.map(|column| labels::guess(facts, column, sample)).unwrap_or_default();
        let name = snake_case(&facts.table);
        let zoneless = |found: &Found| {
            facts.column(&found.value).is_some_and(|column| column.kind == Kind::Instant { zoned: false })
        };
        let mut proposal = Self {
            fixed_type: (!columns.contains_key(&Role::EventType)).then(|| name.clone()),
            name,
            table: facts.readable_name(),
            needs_time_zone: columns.values().any(zoneless),
            columns,
            labels: labels.found,
            notes: Vec::new(),
        };
        proposal.notes = notes::notes(facts, &proposal, &labels.left, sample);
        proposal
    }

    /// A column's name without quotes.
    #[must_use]
    pub fn column(&self, role: Role) -> Option<&str> {
        self.columns.get(&role).map(|found| found.value.as_str())
    }

    /// What a description must name and nothing was found for, in the settings' words.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let columns = Role::ALL.into_iter().filter(|role| role.is_required() && !self.columns.contains_key(role));
        let labels = Status::ALL.into_iter().filter(|status| *status != Status::Skipped);
        columns
            .map(Role::key)
            .chain(labels.filter(|status| !self.labels.contains_key(status)).map(Status::as_str))
            .collect()
    }

    /// What was put in although nothing shows it, in the settings' words.
    #[must_use]
    pub fn invented(&self) -> Vec<&'static str> {
        let is_open = |found: &Found| found.remark.as_deref().is_some_and(|remark| remark.starts_with('?'));
        let columns = self.columns.iter().filter(|(_, found)| is_open(found)).map(|(role, _)| role.key());
        columns
            .chain(self.labels.iter().filter(|(_, found)| is_open(found)).map(|(status, _)| status.as_str()))
            .collect()
    }

    /// Whether rows that are not claimed have an instant of a claim.
    pub(super) fn lock_outlives_claims(&self, sample: &[Sampled]) -> bool {
        let processing = self.labels.get(&Status::Processing).map(|found| found.value.as_str());
        sample.iter().any(|sampled| sampled.locked > 0 && Some(sampled.label.as_str()) != processing)
    }
}

/// Serializes labels under the words of their statuses.
fn by_words<S: serde::Serializer>(labels: &BTreeMap<Status, Found>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(labels.iter().map(|(status, found)| (status.as_str(), found)))
}

/// Guesses the columns of a table.
pub(super) fn columns(facts: &Facts) -> BTreeMap<Role, Found> {
    columns::guess(facts)
}

/// `NotificationDelivery` becomes `notification_delivery`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    let mut after_small = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() {
            after_small = false;
            if !text.is_empty() && !text.ends_with('_') {
                text.push('_');
            }
            continue;
        }
        if letter.is_ascii_uppercase() && after_small {
            text.push('_');
        }
        after_small = !letter.is_ascii_uppercase();
        text.push(letter.to_ascii_lowercase());
    }
    let text = text.trim_matches('_');
    if text.is_empty() { "outbox".to_owned() } else { text.to_owned() }
}

/// A label as statements write it; the column's own type reads it.
pub(super) fn label_literal(label: &str) -> String {
    format!("'{}'", label.replace('\'', "''"))
}

/// A column as statements write it.
pub(super) fn column_sql(proposal: &Proposal, role: Role) -> Option<String> {
    proposal.column(role).map(quote_identifier)
}
