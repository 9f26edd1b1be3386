//! Guessing what the statuses are called: by their words, by the column's default, and by what their rows look like.

use std::collections::BTreeMap;

use super::columns::plain;
use super::facts::{Column, Facts, Kind, Sampled};
use super::proposal::Found;
use crate::event::Status;

/// The words for a status, without case and underscores, the most telling first.
fn words(status: Status) -> &'static [&'static str] {
    match status {
        Status::Pending => {
            &["pending", "new", "queued", "waiting", "ready", "scheduled", "created", "open", "todo", "unprocessed"]
        }
        Status::Processing => {
            &["processing", "running", "inprogress", "claimed", "locked", "active", "started", "sending", "picked"]
        }
        Status::Completed => &[
            "completed",
            "complete",
            "done",
            "delivered",
            "sent",
            "success",
            "succeeded",
            "processed",
            "finished",
            "published",
            "handled",
            "ok",
        ],
        Status::DeadLetter => {
            &["deadletter", "deadlettered", "dead", "failed", "failure", "error", "errored", "exhausted", "abandoned"]
        }
        Status::Skipped => &["skipped", "ignored", "cancelled", "canceled", "discarded"],
        Status::Unknown => &[],
    }
}

/// Labels that are found, and those that no status took.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub(super) found: BTreeMap<Status, Found>,
    pub(super) left: Vec<String>,
}

/// Guesses the labels of this column from everything that is known of it.
pub(super) fn guess(facts: &Facts, column: &Column, sample: &[Sampled]) -> Labels {
    let mut left = known_labels(facts, column, sample);
    let mut found = BTreeMap::new();
    for status in Status::ALL {
        let matching = words(status).iter().find_map(|word| left.iter().position(|label| plain(label) == *word));
        if let Some(place) = matching {
            found.insert(status, Found { value: left.remove(place), remark: None });
        }
    }
    by_default(column, &mut left, &mut found);
    by_evidence(sample, &mut left, &mut found);
    by_order(column, &mut left, &mut found);
    by_remainder(column, &mut left, &mut found);
    // What is valid is known: another word cannot be.
    if !facts.checks.iter().any(|check| lists(check, &column.name)) {
        by_custom(column, &mut found);
    }
    Labels { found, left }
}

/// Enum labels; else those that a CHECK allows and those that stand in the sample.
fn known_labels(facts: &Facts, column: &Column, sample: &[Sampled]) -> Vec<String> {
    if let Kind::Enum(labels) = &column.kind {
        return labels.clone();
    }
    let mut labels: Vec<String> = facts
        .checks
        .iter()
        .filter(|check| mentions(check, &column.name))
        .flat_map(|check| literals(check, column.kind == Kind::Integer))
        .collect();
    labels.extend(sample.iter().map(|sampled| sampled.label.clone()));
    labels.extend(default_label(column));
    let mut seen = std::collections::BTreeSet::new();
    labels.retain(|label| seen.insert(label.clone()));
    if column.kind == Kind::Integer {
        labels.sort_by_key(|label| label.parse::<i64>().unwrap_or(i64::MAX));
    }
    labels
}

/// A row that nobody has touched is pending.
fn by_default(column: &Column, left: &mut Vec<String>, found: &mut BTreeMap<Status, Found>) {
    let Some(label) = default_label(column) else { return };
    let Some(place) = left.iter().position(|known| *known == label) else { return };
    found.entry(Status::Pending).or_insert_with(|| Found {
        value: left.remove(place),
        remark: Some("guessed: the column's default".to_owned()),
    });
}

/// What the rows of a label have in common tells what it means.
fn by_evidence(sample: &[Sampled], left: &mut Vec<String>, found: &mut BTreeMap<Status, Found>) {
    for sampled in sample.iter().filter(|sampled| sampled.rows > 0) {
        let all = |count: i64| count == sampled.rows;
        let status = match sampled {
            Sampled { processed, failed, .. } if all(*processed) && !all(*failed) => Status::Completed,
            Sampled { failed, locked: 0, .. } if all(*failed) => Status::DeadLetter,
            Sampled { locked, processed: 0, .. } if all(*locked) => Status::Processing,
            Sampled { locked: 0, processed: 0, failed: 0, .. } => Status::Pending,
            _ => continue,
        };
        let Some(place) = left.iter().position(|label| *label == sampled.label) else { continue };
        found.entry(status).or_insert_with(|| {
            let Sampled { rows, locked, processed, failed, .. } = sampled;
            let remark = format!(
                "guessed from a sample: {rows} rows, {locked} claimed, {processed} ended, {failed} with an error"
            );
            Found { value: left.remove(place), remark: Some(remark) }
        });
    }
}

/// Numbers mostly follow an event's life.
fn by_order(column: &Column, left: &mut Vec<String>, found: &mut BTreeMap<Status, Found>) {
    if column.kind != Kind::Integer {
        return;
    }
    for status in [Status::Pending, Status::Processing, Status::Completed, Status::DeadLetter] {
        if !left.is_empty() && !found.contains_key(&status) {
            let remark = Some("guessed from the order of the numbers alone: check it".to_owned());
            found.insert(status, Found { value: left.remove(0), remark });
        }
    }
}

/// Where one status and one label are left, they belong together; of a label that a row or a CHECK shows that is likelier
/// than of a word that nothing shows.
fn by_remainder(column: &Column, left: &mut Vec<String>, found: &mut BTreeMap<Status, Found>) {
    if column.kind != Kind::Text {
        return;
    }
    let required = [Status::Pending, Status::Processing, Status::Completed, Status::DeadLetter];
    let lacking: Vec<Status> = required.into_iter().filter(|status| !found.contains_key(status)).collect();
    if let ([status], [_]) = (lacking.as_slice(), left.as_slice()) {
        let remark = Some("guessed: the only status and the only label that are left: check it".to_owned());
        found.insert(*status, Found { value: left.remove(0), remark });
    }
}

/// Whether a CHECK lists the values that this column may have, and says nothing else.
fn lists(check: &str, column: &str) -> bool {
    let one_of = check.contains("= ANY (") || check.contains(" = '");
    let otherwise = ["<>", " AND ", "NOT ", "~", "LIKE"].iter().any(|word| check.contains(word));
    mentions(check, column) && one_of && !otherwise
}

/// Free text shows only the labels that some row has. Where it shows one, the others are written as that one is.
fn by_custom(column: &Column, found: &mut BTreeMap<Status, Found>) {
    let Some(known) = found.values().next().map(|found| found.value.clone()) else { return };
    if column.kind != Kind::Text {
        return;
    }
    let capitals = known.chars().any(char::is_uppercase) && !known.chars().any(char::is_lowercase);
    for status in [Status::Pending, Status::Processing, Status::Completed, Status::DeadLetter] {
        let word = if capitals { status.as_str().to_uppercase() } else { status.as_str().to_owned() };
        // One too long for the column cannot be what the application writes.
        if column.most_chars().is_some_and(|most| word.chars().count() > most) {
            continue;
        }
        let remark = Some("? no row with such a status was seen: put in what the application writes".to_owned());
        found.entry(status).or_insert(Found { value: word, remark });
    }
}

/// The label that the column's default writes.
fn default_label(column: &Column) -> Option<String> {
    let default = column.default.as_deref()?;
    literals(default, column.kind == Kind::Integer).into_iter().next()
}

/// The texts, or the whole numbers, that stand in an expression as the server writes it.
fn literals(expression: &str, numbers: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut outside = String::new();
    let mut rest = expression;
    while let Some((before, after)) = rest.split_once('\'') {
        outside.push_str(before);
        let mut text = String::new();
        rest = after;
        while let Some((part, after)) = rest.split_once('\'') {
            text.push_str(part);
            rest = after;
            let Some(after) = rest.strip_prefix('\'') else { break };
            text.push('\'');
            rest = after;
        }
        found.push(text);
    }
    outside.push_str(rest);
    if numbers {
        found.retain(|text| text.parse::<i64>().is_ok());
        let is_word = |letter: char| letter.is_alphanumeric() || "_\"-".contains(letter);
        let words = outside.split(|letter: char| !is_word(letter));
        found.extend(words.filter(|word| word.parse::<i64>().is_ok()).map(str::to_owned));
    }
    found
}

/// Whether an expression names this column.
pub(super) fn mentions(expression: &str, column: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let name = column.replace('"', "\"\"");
    expression.match_indices(&name).any(|(at, found)| {
        let before = expression[..at].chars().next_back();
        let after = expression[at + found.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word) && before != Some('\'')
    })
}
