//! What operators do to events, and the record of it: who, when and why.

use std::fmt;
use std::str::FromStr;

use crate::timestamp::Timestamp;

/// By which the log of actions knows the outbox of our own tables.
pub(in crate::store) const OWN_OUTBOX: &str = "default";

/// Who changes an event by hand, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The token's name, `cli` with the user's name, or a word for nobody in particular.
    pub name: String,
    /// Why; at most 200 characters.
    pub note: Option<String>,
}

impl Actor {
    /// Somebody who does not say why.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), note: None }
    }

    /// The same, saying why.
    #[must_use]
    pub fn because(self, note: Option<impl Into<String>>) -> Self {
        Self { note: note.map(Into::into), ..self }
    }
}

/// What an operator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// A dead letter was given another chance.
    Requeue,
    /// A dead letter was given up for good.
    Discard,
    /// A pending event was skipped.
    Cancel,
}

impl ActionKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Requeue, Self::Discard, Self::Cancel];

    /// The word in tables and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Discard => "discard",
            Self::Cancel => "cancel",
        }
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text names no action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown action: valid are requeue, discard, cancel")]
pub struct UnknownAction;

impl FromStr for ActionKind {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownAction)
    }
}

/// One line of the log of actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// When it was done.
    pub at: Timestamp,
    /// What was done.
    pub kind: ActionKind,
    /// Who did it.
    pub actor: String,
    /// Why.
    pub note: Option<String>,
}

/// What operators can do in an outbox, beyond requeueing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Whether its table has a status for what was given up for good, or cancelled.
    pub discard: bool,
    /// Whether a requeue can set another attempts limit.
    pub set_max_attempts: bool,
}
