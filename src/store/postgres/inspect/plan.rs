//! Judging a plan: does an index bound what the statement reads, or does it read what has piled up?

use serde::Serialize;
use serde_json::Value;

use super::columns::Role;
use super::facts::{Facts, Index, names};
use super::labels::mentions;
use super::proposal::Proposal;
use super::proposal::label_literal;
use super::statements::Purpose;
use crate::event::Status;

/// How the database would run one statement, and what that means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether what it reads does not grow with the table.
    pub bounded: bool,
    /// The same in words.
    pub words: String,
    /// The indexes that it reads.
    pub indexes: Vec<String>,
}

impl Verdict {
    /// Of a statement that has the right index although the planner would take another way now, as it does through small tables.
    pub(super) fn by_index(index: &Index) -> Self {
        let name = &index.name;
        Self {
            bounded: true,
            words: format!("the index {name} bounds it; by its statistics the planner finds another way as cheap now"),
            indexes: vec![name.clone()],
        }
    }
}

/// What a judgement needs to know besides the plan.
pub(super) struct Judge<'a> {
    pub(super) facts: &'a Facts,
    pub(super) proposal: &'a Proposal,
    /// Whether rows keep the instant of their claim after it has ended.
    pub(super) lock_outlives_claims: bool,
}

/// A node of the plan that reads the table.
struct Scan<'a> {
    node: &'a Value,
    /// Whether something above it needs all its rows before it gives the first.
    gathered: bool,
}

impl Judge<'_> {
    /// Judges the plan of a statement.
    pub(super) fn verdict(&self, purpose: Purpose, plan: &Value) -> Verdict {
        let mut scans = Vec::new();
        find_scans(plan, &self.facts.table, self.facts.partitioned, false, &mut scans);
        let mut indexes = Vec::new();
        for scan in &scans {
            index_names(scan.node, &mut indexes);
        }
        let problem = scans.iter().find_map(|scan| self.problem(purpose, scan));
        let id = self.proposal.column(Role::Id).unwrap_or_default();
        if purpose == Purpose::Settle && problem.is_none() {
            // Others may narrow the search down further; this one bounds it.
            indexes.retain(|name| scans.iter().any(|scan| mentions(&condition_on(scan.node, name), id)));
        }
        let words = match (&problem, indexes.first()) {
            (Some(problem), _) => problem.clone(),
            (None, Some(index)) => format!("bounded by the index {index}"),
            (None, None) => "reads nothing of the table".to_owned(),
        };
        Verdict { bounded: problem.is_none(), words, indexes }
    }

    /// An index that leads straight to what the statement reads, by its keys and its condition alone.
    pub(super) fn leading_index(&self, purpose: Purpose) -> Option<&Index> {
        self.facts.indexes.iter().find(|index| self.leads(purpose, index))
    }

    /// Whether this index does.
    pub(super) fn leads(&self, purpose: Purpose, index: &Index) -> bool {
        let event_type = self.proposal.columns.contains_key(&Role::EventType);
        let ended_at = self.proposal.columns.contains_key(&Role::ProcessedAt);
        let (keys, status) = match purpose {
            Purpose::Claim | Purpose::Survey if event_type => {
                (vec![Role::EventType, Role::AvailableAt], Status::Pending)
            }
            Purpose::Claim | Purpose::Survey => (vec![Role::AvailableAt], Status::Pending),
            Purpose::Settle => return self.begins_with(index, &[Role::Id]),
            Purpose::Reap => (vec![Role::LockedAt], Status::Processing),
            Purpose::DeadLetters if ended_at => (vec![Role::ProcessedAt], Status::DeadLetter),
            Purpose::DeadLetters => (vec![Role::CreatedAt], Status::DeadLetter),
        };
        let after_status: Vec<Role> = [Role::Status].into_iter().chain(keys.iter().copied()).collect();
        let by_lock = purpose == Purpose::Reap && !self.lock_outlives_claims;
        match &index.predicate {
            Some(predicate) => self.begins_with(index, &keys) && self.selects(predicate, status),
            None => self.begins_with(index, &after_status) || (by_lock && self.begins_with(index, &keys)),
        }
    }

    fn begins_with(&self, index: &Index, keys: &[Role]) -> bool {
        let is = |key: &String, role: Role| self.proposal.column(role).is_some_and(|name| names(key, name));
        let partial = index.predicate.is_some() && keys == [Role::Id];
        let same = keys.iter().zip(&index.keys).all(|(role, key)| is(key, *role));
        index.valid && !partial && index.keys.len() >= keys.len() && same
    }

    /// Whether a partial index's condition is that the status is this one.
    fn selects(&self, predicate: &str, status: Status) -> bool {
        let column = self.proposal.column(Role::Status).unwrap_or_default();
        let label = self.proposal.labels.get(&status).map(|found| found.value.as_str()).unwrap_or_default();
        let has_label = predicate.contains(&label_literal(label)) || predicate.ends_with(&format!("= {label})"));
        mentions(predicate, column) && has_label && !predicate.contains("<>") && !predicate.contains(" AND ")
    }

    fn problem(&self, purpose: Purpose, scan: &Scan<'_>) -> Option<String> {
        let node = scan.node;
        let mut names = Vec::new();
        index_names(node, &mut names);
        let Some(name) = names.first() else { return Some("reads the whole table".to_owned()) };
        let condition = index_condition(node);
        let predicate = self.facts.indexes.iter().find(|index| index.name == *name).and_then(|i| i.predicate.clone());
        if condition.is_empty() && predicate.is_none() {
            return Some(format!("reads the whole table, by the index {name}"));
        }
        let leads = |role: Role| self.proposal.column(role).is_some_and(|column| mentions(&condition, column));
        if purpose == Purpose::Settle {
            return (!leads(Role::Id)).then(|| format!("does not find rows by their id: it reads the index {name}"));
        }
        let status = self.proposal.column(Role::Status).unwrap_or_default();
        let by_status = leads(Role::Status) || predicate.is_some_and(|predicate| mentions(&predicate, status));
        let by_lock = purpose == Purpose::Reap && leads(Role::LockedAt);
        let cleared = by_lock && !self.lock_outlives_claims;
        if !by_status && !cleared {
            return Some(format!("reads finished events too: the index {name} does not tell them apart"));
        }
        if scan.gathered && !by_lock {
            let what = if purpose == Purpose::DeadLetters { "dead letters" } else { "waiting or claimed events" };
            return Some(format!("reads and sorts all {what} that the index {name} finds"));
        }
        let filter = node["Filter"].as_str().unwrap_or_default();
        let filters = |role: Role| self.proposal.column(role).is_some_and(|column| mentions(filter, column));
        match purpose {
            Purpose::Claim | Purpose::Survey if filters(Role::EventType) => Some(format!(
                "reads past the waiting events of all other types: the index {name} does not begin with them"
            )),
            Purpose::Claim if filters(Role::AvailableAt) => {
                Some(format!("reads past all events that wait for the future: the index {name} has no due time"))
            }
            Purpose::Reap if filters(Role::LockedAt) => {
                Some(format!("reads all claimed events: the index {name} is not in the order of claims"))
            }
            Purpose::Claim | Purpose::Survey | Purpose::Settle | Purpose::Reap | Purpose::DeadLetters => None,
        }
    }
}

/// Finds what reads the table, from the top down. A partition's scan counts as one of the table.
fn find_scans<'a>(node: &'a Value, table: &str, any_table: bool, gathered: bool, found: &mut Vec<Scan<'a>>) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let gathers = match kind {
        "Sort" | "Hash" | "Bitmap Heap Scan" => true,
        "Aggregate" => node["Strategy"].as_str() != Some("Sorted"),
        _ => false,
    };
    let gathered = gathered || gathers;
    let relation = node["Relation Name"].as_str();
    if kind.ends_with("Scan") && relation.is_some_and(|name| any_table || name == table) {
        found.push(Scan { node, gathered });
        return;
    }
    for child in children(node) {
        find_scans(child, table, any_table, gathered, found);
    }
}

fn children(node: &Value) -> &[Value] {
    node["Plans"].as_array().map_or(&[], Vec::as_slice)
}

/// The indexes of a scan; a bitmap's stand below it.
fn index_names(node: &Value, found: &mut Vec<String>) {
    if let Some(name) = node["Index Name"].as_str()
        && !found.iter().any(|known| known == name)
    {
        found.push(name.to_owned());
    }
    for child in children(node) {
        index_names(child, found);
    }
}

fn index_condition(node: &Value) -> String {
    let own = node["Index Cond"].as_str().unwrap_or_default().to_owned();
    children(node).iter().fold(own, |conditions, child| conditions + " " + &index_condition(child)).trim().to_owned()
}

/// The condition under which a scan reads this index.
fn condition_on(node: &Value, index: &str) -> String {
    if node["Index Name"].as_str() == Some(index) {
        return node["Index Cond"].as_str().unwrap_or_default().to_owned();
    }
    children(node).iter().map(|child| condition_on(child, index)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// A plan as an outline, one node a line.
pub(super) fn outline(node: &Value, depth: usize, lines: &mut Vec<String>) {
    let text = |key: &str, before: &str| node[key].as_str().map_or(String::new(), |text| format!("{before}{text}"));
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let place = format!("{}{}", text("Index Name", " using "), text("Relation Name", " on "));
    let condition = format!("{}{}", text("Index Cond", "  index condition "), text("Filter", "  filter "));
    lines.push(format!("{}{kind}{place}{condition}", "  ".repeat(depth)));
    for child in children(node) {
        outline(child, depth + 1, lines);
    }
}
