//! An inspection for people: a description to paste into the settings, then indexes, then plans.

use std::fmt::Write as _;

use crate::event::{DEFAULT_MAX_ATTEMPTS, Status};
use crate::store::postgres::inspect::{Advice, Hot, Inspection, Proposal, Role};

/// Characters of a comment's line.
const WIDTH: usize = 110;

/// The whole text.
pub(super) fn inspection(inspection: &Inspection) -> String {
    let mut text = description(&inspection.proposal);
    text.push_str("\n# Indexes\n");
    if inspection.indexes.is_empty() {
        text.push_str("# Nothing to add and nothing to drop.\n");
    }
    for advice in &inspection.indexes {
        write_advice(&mut text, advice);
    }
    text.push_str("\n# How the statements would run\n");
    if inspection.statements.is_empty() {
        text.push_str("# Not known while the description has gaps.\n");
    }
    for hot in &inspection.statements {
        write_plan(&mut text, hot);
    }
    text
}

/// Why the inspection ends with 1.
pub(super) fn what_is_wrong(inspection: &Inspection) -> String {
    let missing = inspection.proposal.missing();
    if !missing.is_empty() {
        return format!("nothing was found for {}: fill in what is marked with ?", missing.join(", "));
    }
    let invented = inspection.proposal.invented();
    if !invented.is_empty() {
        return format!("nothing shows what {} should be: put in what is marked with ?", invented.join(", "));
    }
    let slow = |hot: &&Hot| hot.purpose.is_hot() && !hot.verdict.bounded;
    let slow: Vec<&str> = inspection.statements.iter().filter(slow).map(|hot| hot.purpose.name()).collect();
    format!("not bounded by an index: {}", slow.join(", "))
}

/// The description as TOML, with comments where somebody should look.
fn description(proposal: &Proposal) -> String {
    let mut text = String::new();
    for note in &proposal.notes {
        comment(&mut text, note);
    }
    text.push_str("[[outbox]]\n");
    setting(&mut text, "name", &proposal.name, None);
    setting(&mut text, "table", &proposal.table, None);
    if let Some(fixed_type) = &proposal.fixed_type {
        let remark = "guessed: there seems to be no column of types, so all events are of this one; routes match it";
        setting(&mut text, "fixed_type", fixed_type, Some(remark));
    }
    if !proposal.columns.contains_key(&Role::MaxAttempts) {
        let _ = writeln!(text, "max_attempts = {DEFAULT_MAX_ATTEMPTS}  # the table has no limit of its own");
    }
    if proposal.needs_time_zone {
        let remark = "guessed: of instants without a time zone; what the application's clock writes";
        setting(&mut text, "time_zone", "UTC", Some(remark));
    }
    let remark = "longer than any handler's timeout, and at least the old poller's stale threshold";
    setting(&mut text, "lease", "10m", Some(remark));
    text.push_str("[outbox.columns]\n");
    for role in Role::ALL {
        match proposal.columns.get(&role) {
            Some(found) => setting(&mut text, role.key(), &found.value, found.remark.as_deref()),
            None if role.is_required() => question(&mut text, role.key()),
            None => {}
        }
    }
    text.push_str("[outbox.status]\n");
    for status in Status::ALL {
        match proposal.labels.get(&status) {
            Some(found) => setting(&mut text, status.as_str(), &found.value, found.remark.as_deref()),
            None if status == Status::Skipped => text.push_str("# skipped: the table has no label for it\n"),
            None => question(&mut text, status.as_str()),
        }
    }
    text
}

fn setting(text: &mut String, key: &str, value: &str, remark: Option<&str>) {
    let value = toml::Value::from(value);
    let remark = remark.map_or(String::new(), |remark| format!("  # {remark}"));
    // Writing to text cannot fail.
    let _ = writeln!(text, "{key} = {value}{remark}");
}

/// A line that has to be filled in: left as it is the settings are refused, which is better than a wrong name.
fn question(text: &mut String, key: &str) {
    let _ = writeln!(text, "# {key} = \"?\"  # ? nothing was found for it");
}

fn write_advice(text: &mut String, advice: &Advice) {
    let weight = if advice.needed { "missing" } else { "consider" };
    comment(text, &format!("{weight}: {}", advice.reason));
    let _ = writeln!(text, "#   {}", advice.statement);
}

fn write_plan(text: &mut String, hot: &Hot) {
    let verdict = if hot.verdict.bounded { "ok" } else { "NOT BOUNDED" };
    comment(text, &format!("{}: {verdict}: {}", hot.purpose.name(), hot.verdict.words));
    for line in &hot.plan {
        let _ = writeln!(text, "#     {line}");
    }
}

/// A sentence in as many lines as it needs.
fn comment(text: &mut String, sentence: &str) {
    let mut line = "#".to_owned();
    for word in sentence.split(' ') {
        if line.len() + word.len() >= WIDTH {
            let _ = writeln!(text, "{line}");
            "#  ".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}
