//! What is measured: names, what they mean, and a function for each thing that happens.
//!
//! Every name is in [`METRICS`] with its kind, its labels and a sentence; the README's table is held against it by a test.
//! Recording goes through the crate `metrics`, so an application that uses the library may install a recorder of its own,
//! before its first run. [`exporter`] is the service's: what `GET /metrics` answers.
//!
//! No label holds what a stranger can invent without bound: event types are capped at [`MOST_TYPES`], then [`OTHER`]. No
//! label holds a payload, a subject, an error or a secret.

pub mod exporter;
mod list;
mod process;
mod sample;
mod types;

pub use list::{Kind, METRICS, Metric};
pub use process::{
    Running, attempt_ended, auth_failed, dead_letter, http_request, lease_lost, lease_reaped, purged, register,
    run_ended, running,
};
pub use sample::{Lane, connections, expect_lane, lanes, last_successful_run, stats_succeeded};
pub use types::{MOST_TYPES, OTHER, type_label};

/// Why an event became a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// Its attempts were used up.
    AttemptsExhausted,
    /// A permanent failure.
    Permanent,
    /// It was deferred for too long.
    DeferredTooLong,
    /// Its last claim expired: its worker died.
    ClaimExpired,
}

impl GivenUp {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::AttemptsExhausted, Self::Permanent, Self::DeferredTooLong, Self::ClaimExpired];

    /// The label's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::Permanent => "permanent",
            Self::DeferredTooLong => "deferred_too_long",
            Self::ClaimExpired => "claim_expired",
        }
    }
}

/// Why a request was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFailure {
    /// It brought no token.
    Missing,
    /// Nobody has the token that it brought.
    Unknown,
    /// Its token lacks the scope.
    Scope,
}

impl AuthFailure {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Missing, Self::Unknown, Self::Scope];

    /// The label's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing_token",
            Self::Unknown => "unknown_token",
            Self::Scope => "missing_scope",
        }
    }
}
