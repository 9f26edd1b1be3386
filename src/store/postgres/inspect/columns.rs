//! Guessing which column plays which part: by name, then by the end of the name, then by type.

use std::collections::BTreeMap;

use serde::Serialize;

use super::facts::{Column, Facts, Kind};
use super::names::NAMES;
use super::proposal::Found;

/// The part that a column plays in an outbox; in the settings it is called by the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words are those of the description's columns, and explained there")]
pub enum Role {
    Id,
    EventType,
    Payload,
    Status,
    Attempts,
    AvailableAt,
    LockedAt,
    CreatedAt,
    ProcessedAt,
    LastError,
    MaxAttempts,
    Subject,
    Headers,
    ClaimNo,
}

impl Role {
    /// Every part, in the order in which a description lists them.
    pub const ALL: [Self; 14] = [
        Self::Id,
        Self::EventType,
        Self::Payload,
        Self::Status,
        Self::Attempts,
        Self::AvailableAt,
        Self::LockedAt,
        Self::CreatedAt,
        Self::ProcessedAt,
        Self::LastError,
        Self::MaxAttempts,
        Self::Subject,
        Self::Headers,
        Self::ClaimNo,
    ];

    /// The settings' word for it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::EventType => "event_type",
            Self::Payload => "payload",
            Self::Status => "status",
            Self::Attempts => "attempts",
            Self::AvailableAt => "available_at",
            Self::LockedAt => "locked_at",
            Self::CreatedAt => "created_at",
            Self::ProcessedAt => "processed_at",
            Self::LastError => "last_error",
            Self::MaxAttempts => "max_attempts",
            Self::Subject => "subject",
            Self::Headers => "headers",
            Self::ClaimNo => "claim_no",
        }
    }

    /// Whether a description is none without it. A type may be fixed instead.
    #[must_use]
    pub fn is_required(self) -> bool {
        self < Self::ProcessedAt && self != Self::EventType
    }

    /// Names, without case and underscores, the most telling first.
    fn names(self) -> &'static [&'static str] {
        NAMES.iter().find(|(role, _)| *role == self).map_or(&[], |(_, names)| names)
    }

    fn fits(self, kind: &Kind) -> bool {
        match self {
            Self::Id => matches!(kind, Kind::Uuid | Kind::Text | Kind::Integer),
            Self::EventType | Self::LastError | Self::Subject => *kind == Kind::Text,
            Self::Payload => matches!(kind, Kind::Json | Kind::Text | Kind::Bytes),
            Self::Status => matches!(kind, Kind::Text | Kind::Integer | Kind::Enum(_)),
            Self::Attempts | Self::MaxAttempts | Self::ClaimNo => *kind == Kind::Integer,
            Self::AvailableAt | Self::LockedAt | Self::CreatedAt | Self::ProcessedAt => {
                matches!(kind, Kind::Instant { .. })
            }
            Self::Headers => *kind == Kind::Json,
        }
    }
}

/// What the parts are played by, as far as it can be guessed. No column plays two.
pub(super) fn guess(facts: &Facts) -> BTreeMap<Role, Found> {
    let mut guesses = Guesses { facts, found: BTreeMap::new() };
    if let Some(key) = facts.primary_key().filter(|key| Role::Id.fits(&key.kind)) {
        guesses.take(Role::Id, key, None);
    }
    for role in Role::ALL {
        guesses.by_name(role);
    }
    for role in Role::ALL {
        guesses.by_the_end_of_a_name(role);
    }
    guesses.by_type();
    guesses.found
}

struct Guesses<'a> {
    facts: &'a Facts,
    found: BTreeMap<Role, Found>,
}

impl<'a> Guesses<'a> {
    fn by_name(&mut self, role: Role) {
        if self.found.contains_key(&role) {
            return;
        }
        let free = self.free(role);
        let mut matches =
            role.names().iter().filter_map(|name| free.iter().find(|column| plain(&column.name) == *name));
        let Some(column) = matches.next() else { return };
        let others: Vec<&str> = matches.map(|column| column.name.as_str()).collect();
        let remark = match (role, others.as_slice()) {
            (Role::Headers, _) if plain(&column.name) != "headers" => {
                Some("guessed: must hold an object of strings".to_owned())
            }
            (_, []) => None,
            (_, others) => Some(format!("guessed; it could also be {}", others.join(" or "))),
        };
        self.take(role, column, remark);
    }

    fn by_the_end_of_a_name(&mut self, role: Role) {
        // A short end, or one of a part that need not be there, would be found in too many names.
        if self.found.contains_key(&role) || !(role.is_required() || role == Role::EventType) {
            return;
        }
        let free = self.free(role);
        let ends = |column: &&&Column| {
            let name = plain(&column.name);
            role.names().iter().any(|end| end.len() > 3 && name.ends_with(end))
        };
        if let Some(column) = free.iter().find(ends) {
            self.take(role, column, Some("guessed from the end of its name".to_owned()));
        }
    }

    fn by_type(&mut self) {
        let only = |role: Role, wanted: fn(&Kind) -> bool, guesses: &Self| {
            let columns: Vec<&Column> = guesses.free(role).into_iter().filter(|column| wanted(&column.kind)).collect();
            match columns.as_slice() {
                [column] if !guesses.found.contains_key(&role) => Some(*column),
                _ => None,
            }
        };
        if let Some(column) = only(Role::Payload, |kind| *kind == Kind::Json, self) {
            self.take(Role::Payload, column, Some("guessed: the only column of JSON".to_owned()));
        }
        if let Some(column) = only(Role::Status, |kind| matches!(kind, Kind::Enum(_)), self) {
            self.take(Role::Status, column, Some("guessed: the only column of an enum".to_owned()));
        }
    }

    /// Columns that could play this part and play no other yet.
    fn free(&self, role: Role) -> Vec<&'a Column> {
        let taken = |column: &Column| self.found.values().any(|found| found.value == column.name);
        self.facts.columns.iter().filter(|column| role.fits(&column.kind) && !taken(column)).collect()
    }

    fn take(&mut self, role: Role, column: &Column, remark: Option<String>) {
        self.found.insert(role, Found { value: column.name.clone(), remark });
    }
}

/// A name without case and without what parts its words.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
