//! What an operator should know about a table before he uses its description.

use super::columns::{Role, plain};
use super::facts::{Facts, Sampled};
use super::proposal::Proposal;

/// Names, without case and underscores, of columns that hold a lease's end, which outboxd does not use.
const LEASE_ENDS: [&str; 5] = ["lockeduntil", "leaseuntil", "leaseexpiresat", "lockexpiresat", "visibleuntil"];

/// One sentence each.
pub(super) fn notes(facts: &Facts, proposal: &Proposal, labels_left: &[String], sample: &[Sampled]) -> Vec<String> {
    let mut notes = Vec::new();
    if !labels_left.is_empty() {
        let labels = labels_left.join(", ");
        notes.push(format!("rows with another status ({labels}) are never claimed; they count as unknown"));
    }
    notes.extend(order(proposal));
    notes.extend(lease_end(facts, proposal));
    notes.extend(required(facts, proposal));
    if proposal.lock_outlives_claims(sample) {
        let lock = proposal.column(Role::LockedAt).unwrap_or_default();
        notes.push(format!("finished rows keep {lock}: an index on that column alone does not find old claims"));
    }
    if facts.partitioned {
        notes.push("it is partitioned: an index can be added concurrently only to each partition by itself".to_owned());
    }
    notes.extend(precision(facts, proposal));
    notes
}

fn order(proposal: &Proposal) -> Option<String> {
    let created_at = proposal.column(Role::CreatedAt)?;
    Some(format!(
        "order_by is left out, so a lane is in the order of due times; order_by = \"{created_at}\" would keep the order \
         of creation, but no index can then skip events that wait for the future: every claim reads past all retries and \
         delayed events that were created earlier"
    ))
}

fn lease_end(facts: &Facts, proposal: &Proposal) -> Option<String> {
    if proposal.columns.contains_key(&Role::LockedAt) {
        return None;
    }
    let column = facts.columns.iter().find(|column| LEASE_ENDS.contains(&plain(&column.name).as_str()))?;
    Some(format!("{} seems to hold a lease's end; locked_at must hold the instant of the claim", column.name))
}

fn required(facts: &Facts, proposal: &Proposal) -> Option<String> {
    let is_described = |name: &str| proposal.columns.values().any(|found| found.value == name);
    let required: Vec<&str> = facts
        .columns
        .iter()
        .filter(|column| !column.nullable && column.default.is_none() && !is_described(&column.name))
        .map(|column| column.name.as_str())
        .collect();
    let names = required.join(", ");
    (!required.is_empty())
        .then(|| format!("outboxd cannot add events to it: {names} must be given, and no description names it"))
}

/// Claims are told apart by their instants; coarse ones are told apart badly.
fn precision(facts: &Facts, proposal: &Proposal) -> Option<String> {
    let column = facts.column(proposal.column(Role::LockedAt)?)?;
    let coarse = column.type_name.contains("(0)") && !proposal.columns.contains_key(&Role::ClaimNo);
    coarse.then(|| {
        let name = &column.name;
        format!("{name} holds whole seconds and there is no claim_no: an event that is given back waits 4 s for its next claim")
    })
}
