//! Which indexes are missing, which do nothing for outboxd, and the statements that change that without blocking writers.

use serde::Serialize;

use super::columns::Role;
use super::facts::{Facts, Index};
use super::plan::Judge;
use super::proposal::{Proposal, label_literal};
use super::statements::Purpose;
use super::{Hot, facts};
use crate::event::Status;

/// One thing to do about an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Whether outboxd needs it. What is not needed is only pointed out.
    pub needed: bool,
    /// Why.
    pub reason: String,
    /// The statement that does it. It runs outside a transaction and does not block writers.
    pub statement: String,
}

/// What to do about the table's indexes, given how its statements run.
pub(super) fn advice(judge: &Judge<'_>, hot: &[Hot]) -> Vec<Advice> {
    let (facts, proposal) = (judge.facts, judge.proposal);
    let bad = |purposes: &[Purpose]| {
        hot.iter().any(|statement| purposes.contains(&statement.purpose) && !statement.verdict.bounded)
    };
    let mut advice = Vec::new();
    if bad(&[Purpose::Claim, Purpose::Survey]) {
        let mut keys = vec![Role::AvailableAt, Role::Id];
        if proposal.columns.contains_key(&Role::EventType) {
            keys.insert(0, Role::EventType);
        }
        let reason = "claims and surveys read more than they take: this index leads to each type's next due event";
        advice
            .extend(index(facts, proposal, "claim", &keys, Status::Pending).map(|statement| needed(reason, statement)));
    }
    if bad(&[Purpose::Reap]) {
        let reason = "old claims are not found by an index: this one holds only what is claimed";
        let statement = index(facts, proposal, "lease", &[Role::LockedAt], Status::Processing);
        advice.extend(statement.map(|statement| needed(reason, statement)));
    }
    if bad(&[Purpose::Settle])
        && let Some(id) = proposal.column(Role::Id).map(facts::readable)
    {
        let table = facts.readable_name();
        let statement = format!("CREATE UNIQUE INDEX CONCURRENTLY {} ON {table} ({id});", index_name(facts, "id"));
        advice.push(needed("events are not found by their id", statement));
    }
    if bad(&[Purpose::DeadLetters]) {
        let ended_at =
            if proposal.columns.contains_key(&Role::ProcessedAt) { Role::ProcessedAt } else { Role::CreatedAt };
        let statement = index(facts, proposal, "dead", &[ended_at, Role::Id], Status::DeadLetter);
        let reason = "listing dead letters reads more than a page: worth it where many of them stay".to_owned();
        advice.extend(statement.map(|statement| Advice { needed: false, reason, statement }));
    }
    advice.extend(useless(judge, hot));
    advice
}

fn needed(reason: &str, statement: String) -> Advice {
    Advice { needed: true, reason: reason.to_owned(), statement }
}

fn index(facts: &Facts, proposal: &Proposal, what: &str, keys: &[Role], of: Status) -> Option<String> {
    let name = |role: &Role| proposal.column(*role).map(facts::readable);
    let keys = keys.iter().map(name).collect::<Option<Vec<_>>>()?.join(", ");
    let status = proposal.column(Role::Status).map(facts::readable)?;
    let label = label_literal(&proposal.labels.get(&of)?.value);
    let (index, table) = (index_name(facts, what), facts.readable_name());
    Some(format!("CREATE INDEX CONCURRENTLY {index} ON {table} ({keys}) WHERE {status} = {label};"))
}

/// A name that says whose index it is, within what a name may be long.
fn index_name(facts: &Facts, what: &str) -> String {
    const MOST_BYTES: usize = 63;
    let end = format!("_outboxd_{what}");
    let mut start = String::new();
    for letter in facts.table.chars() {
        if start.len() + letter.len_utf8() + end.len() > MOST_BYTES {
            break;
        }
        start.push(letter);
    }
    facts::readable(&format!("{start}{end}"))
}

/// Indexes that are broken, and those that bound no statement here. One that is made for a statement, such as our own
/// advice, is not useless because the planner takes another way today.
fn useless(judge: &Judge<'_>, hot: &[Hot]) -> Vec<Advice> {
    let facts = judge.facts;
    let mut found = Vec::new();
    let bounds = |hot: &Hot, index: &Index| {
        let is_read = hot.verdict.bounded && hot.verdict.indexes.contains(&index.name);
        is_read || judge.leads(hot.purpose, index)
    };
    for index in &facts.indexes {
        let name = facts::readable(&index.name);
        let statement = format!("DROP INDEX CONCURRENTLY {}.{name};", facts::readable(&facts.schema));
        let reason = if !index.valid {
            format!("{name} is not valid: an attempt to build it failed, or is not yet done")
        } else if !hot.is_empty() && !index.unique && !hot.iter().any(|hot| bounds(hot, index)) {
            format!(
                "{name} bounds nothing that outboxd does and costs every write: once nothing is missing, drop it if the \
                 application does without"
            )
        } else {
            continue;
        };
        found.push(Advice { needed: false, reason, statement });
    }
    found
}
