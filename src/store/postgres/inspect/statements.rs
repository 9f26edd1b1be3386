//! The hot statements on a proposed table, in their shortest form: the same conditions, order and limits as the store's.

use serde::Serialize;

use super::columns::Role;
use super::facts::{Facts, Kind};
use super::proposal::{Proposal, column_sql, label_literal};
use crate::event::Status;

/// What a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Takes due events of each type.
    Claim,
    /// Finds the types that have waiting events.
    Survey,
    /// Writes an outcome.
    Settle,
    /// Takes back old claims.
    Reap,
    /// Lists dead letters, newest first. An operator's, and so not hot.
    DeadLetters,
}

impl Purpose {
    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Survey => "survey",
            Self::Settle => "settle by id",
            Self::Reap => "reap",
            Self::DeadLetters => "dead letters",
        }
    }

    /// Whether it is run again and again while events are delivered.
    #[must_use]
    pub fn is_hot(self) -> bool {
        match self {
            Self::Claim | Self::Survey | Self::Settle | Self::Reap => true,
            Self::DeadLetters => false,
        }
    }
}

/// Renders the statements; none when the proposal lacks what they need.
pub(super) fn statements(facts: &Facts, proposal: &Proposal) -> Vec<(Purpose, String)> {
    rendered(facts, proposal).unwrap_or_default()
}

fn rendered(facts: &Facts, proposal: &Proposal) -> Option<Vec<(Purpose, String)>> {
    let table = facts.quoted_name();
    let column = |role| column_sql(proposal, role);
    let label = |status| proposal.labels.get(&status).map(|found| label_literal(&found.value));
    let (id, status) = (column(Role::Id)?, column(Role::Status)?);
    let (available_at, locked_at) = (column(Role::AvailableAt)?, column(Role::LockedAt)?);
    let created_at = column(Role::CreatedAt)?;
    let (pending, processing) = (label(Status::Pending)?, label(Status::Processing)?);
    let (completed, dead_letter) = (label(Status::Completed)?, label(Status::DeadLetter)?);
    let due = now(facts, proposal, Role::AvailableAt)?;
    let expired = now(facts, proposal, Role::LockedAt)?;
    let id_type = &facts.column(proposal.column(Role::Id)?)?.type_name;
    let ended_at = column(Role::ProcessedAt).unwrap_or(created_at);

    let event_type = column(Role::EventType);
    let of_lane = event_type.as_ref().map_or("$1::text IS NOT NULL".to_owned(), |name| format!("e.{name} = $1::text"));
    let claim = format!(
        "SELECT e.{id} FROM {table} AS e \
         WHERE e.{status} = {pending} AND {of_lane} AND e.{available_at} <= {due} \
         ORDER BY e.{available_at} LIMIT 100 FOR UPDATE SKIP LOCKED"
    );
    let survey = match &event_type {
        Some(name) => format!(
            "SELECT e.{name} FROM {table} AS e WHERE e.{status} = {pending} AND e.{name} > $1::text \
             ORDER BY e.{name} LIMIT 1"
        ),
        None => format!(
            "SELECT e.{available_at} FROM {table} AS e WHERE e.{status} = {pending} AND $1::text IS NOT NULL \
             ORDER BY e.{available_at} LIMIT 1"
        ),
    };
    let settle = format!(
        "UPDATE {table} AS e SET {status} = {completed} \
         WHERE e.{id} = ANY ($1::{id_type}[]) AND e.{status} = {processing}"
    );
    let reap = format!(
        "SELECT e.{id} FROM {table} AS e \
         WHERE e.{status} = {processing} AND e.{locked_at} < {expired} - $1::interval \
         ORDER BY e.{locked_at} LIMIT $2::integer FOR UPDATE SKIP LOCKED"
    );
    let dead_letters = format!(
        "SELECT e.{id} FROM {table} AS e WHERE e.{status} = {dead_letter} \
         ORDER BY e.{ended_at} DESC, e.{id} DESC LIMIT $1::integer"
    );
    Some(vec![
        (Purpose::Claim, claim),
        (Purpose::Survey, survey),
        (Purpose::Settle, settle),
        (Purpose::Reap, reap),
        (Purpose::DeadLetters, dead_letters),
    ])
}

/// The present instant in a column's own type, so that the column itself is compared bare.
fn now(facts: &Facts, proposal: &Proposal, role: Role) -> Option<&'static str> {
    match facts.column(proposal.column(role)?)?.kind {
        Kind::Instant { zoned: true } => Some("now()"),
        Kind::Instant { zoned: false } => Some("(now() AT TIME ZONE 'UTC')"),
        Kind::Uuid | Kind::Text | Kind::Integer | Kind::Json | Kind::Bytes | Kind::Enum(_) | Kind::Other => None,
    }
}
