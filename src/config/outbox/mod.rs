//! From `[[outbox]]` tables to descriptions: everything that can be judged without the database. What a table really is
//! like, its catalogue says when the outbox is opened.

mod condition;
pub(super) mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::check::{LONGEST, duration_range};
use super::problem::{ConfigError, Problems, quoted};
use super::ranges::MAX_ATTEMPTS;
use super::settings::Settings;
use crate::event::{Status, check_event_type};
use crate::retention::Retention;
use crate::store::description::{Description, Labels, TableName, is_identifier};
use written::{Label, Outbox};

/// The name of the outbox whose tables outboxd has made.
pub(super) const DEFAULT_NAME: &str = "default";

const MAX_NAME_CHARS: usize = 64;
const MAX_LABEL_CHARS: usize = 200;
const SHORTEST_LEASE: Duration = Duration::from_secs(2);
const LONGEST_LEASE: Duration = Duration::from_hours(7 * 24);
/// Kept for ever: a store knows no longer time than a century.
const NEVER: Duration = Duration::MAX;
/// The states that a settlement ends an event in.
const FINAL: [Status; 3] = [Status::Completed, Status::DeadLetter, Status::Skipped];

/// An adopted table as it is described, and how long its finished events are kept.
#[derive(Debug, Clone)]
pub(super) struct Described {
    pub(super) description: Description,
    /// Nothing is deleted when `None`.
    pub(super) retention: Option<Retention>,
}

/// The key under which problems of an outbox are named.
pub(super) fn key(index: usize, name: &str) -> String {
    format!("outbox.{index} ({name:?})")
}

/// Judges and describes every adopted table.
pub(super) fn described(settings: &Settings) -> Result<Vec<Described>, ConfigError> {
    let mut problems = Problems::default();
    let mut described = Vec::with_capacity(settings.outboxes.len());
    if !settings.default_outbox && settings.outboxes.is_empty() {
        problems.add("default_outbox", "false leaves no outbox at all: valid are true, or an [[outbox]]");
    }
    for (index, outbox) in settings.outboxes.iter().enumerate() {
        let key = key(index, &outbox.name);
        if settings.outboxes[..index].iter().any(|earlier| earlier.name == outbox.name) {
            problems.add(&format!("{key}.name"), "two outboxes have this name: names must differ");
        }
        described.extend(problems.keep(describe(&key, outbox)));
    }
    problems.finish()?;
    Ok(described)
}

fn describe(key: &str, outbox: &Outbox) -> Result<Described, ConfigError> {
    let mut problems = Problems::default();
    check_name(key, &outbox.name, &mut problems);
    check_columns(key, outbox, &mut problems);
    check_labels(key, outbox, &mut problems);
    check_scalars(key, outbox, &mut problems);
    let processed_at_on = processed_at_on(key, outbox, &mut problems);
    let retention = retention(key, outbox, &mut problems);
    let table = TableName::parse(&outbox.table);
    if let Err(invalid) = &table {
        problems.add(&format!("{key}.table"), format!("{:?} is not valid: {invalid}", outbox.table));
    }
    problems.finish()?;
    let Ok(table) = table else { return Err(ConfigError::one(format!("{key}: cannot be used"))) };
    let description = Description {
        name: outbox.name.clone(),
        table,
        columns: outbox.columns.clone(),
        labels: labels(outbox),
        fixed_type: outbox.fixed_type.clone(),
        order_by: outbox.order_by.clone(),
        max_attempts: outbox.max_attempts,
        time_zone: outbox.time_zone.clone(),
        instants: outbox.instants,
        lease: outbox.lease,
        processed_at_on,
        filter: outbox.filter.clone(),
    };
    Ok(Described { description, retention })
}

fn labels(outbox: &Outbox) -> Labels {
    let status = outbox.status.clone();
    Labels {
        pending: status.pending.0,
        processing: status.processing.0,
        completed: status.completed.0,
        dead_letter: status.dead_letter.0,
        skipped: status.skipped.map(|Label(label)| label),
    }
}

fn check_name(key: &str, name: &str, problems: &mut Problems) {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if name == DEFAULT_NAME {
        problems.add(&format!("{key}.name"), "is the name of the default outbox: choose another one");
    } else if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.bytes().all(allowed) {
        let valid = format!("valid are 1 to {MAX_NAME_CHARS} characters of a-z 0-9 _ -");
        problems.add(&format!("{key}.name"), format!("{name:?} is not valid: {valid}"));
    }
}

fn check_columns(key: &str, outbox: &Outbox, problems: &mut Problems) {
    let named = outbox.columns.named();
    let order_by = outbox.order_by.as_deref().map(|column| (format!("{key}.order_by"), column));
    let keys = named.iter().map(|(name, column)| (format!("{key}.columns.{name}"), *column));
    for (key, column) in keys.chain(order_by) {
        check_identifier(&key, column, problems);
    }
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, column) in named {
        let first = owners.insert(column, name);
        // A table may keep no other instant than the due time. Everything else is written by itself.
        if let Some(first) = first
            && (first, name) != ("available_at", "created_at")
        {
            let problem = format!("{column:?} is {first} already: each column may stand once");
            problems.add(&format!("{key}.columns.{name}"), problem);
        }
    }
    let event_type = format!("{key}.columns.event_type");
    match (&outbox.columns.event_type, &outbox.fixed_type) {
        (Some(_), None) => {}
        (None, Some(fixed)) => {
            if let Err(valid) = check_event_type(fixed) {
                problems.add(&format!("{key}.fixed_type"), format!("{fixed:?} is not valid: {valid}"));
            }
        }
        (None, None) => problems.add(&event_type, "is missing: valid is exactly one of it and the outbox's fixed_type"),
        (Some(_), Some(_)) => {
            problems.add(&event_type, "stands beside fixed_type: valid is exactly one of them");
        }
    }
}

fn check_identifier(key: &str, column: &str, problems: &mut Problems) {
    if !is_identifier(column) {
        problems.add(key, format!("{column:?} is not valid: valid are names of 1 to 63 bytes without NUL"));
    } else if column.len() > 2 && column.starts_with('"') && column.ends_with('"') {
        let bare = column.trim_matches('"');
        problems.add(key, format!("{column:?} is not valid: columns are named without quotes, such as {bare:?}"));
    }
}

fn check_labels(key: &str, outbox: &Outbox, problems: &mut Problems) {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, label) in outbox.status.named() {
        let key = format!("{key}.status.{name}");
        if !(1..=MAX_LABEL_CHARS).contains(&label.chars().count()) || label.contains('\0') {
            problems
                .add(&key, format!("{label:?} is not valid: valid are 1 to {MAX_LABEL_CHARS} characters without NUL"));
        }
        if let Some(first) = owners.insert(label, name) {
            problems.add(&key, format!("{label:?} is {first} already: each label may stand once"));
        }
    }
}

fn check_scalars(key: &str, outbox: &Outbox, problems: &mut Problems) {
    problems.range(&format!("{key}.max_attempts"), &outbox.max_attempts, &MAX_ATTEMPTS);
    duration_range(problems, &format!("{key}.lease"), outbox.lease, SHORTEST_LEASE, LONGEST_LEASE);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-:".contains(&byte);
    let zone = &outbox.time_zone;
    if !(1..=MAX_NAME_CHARS).contains(&zone.len()) || !zone.bytes().all(allowed) {
        let valid = "valid are such as \"UTC\", \"Europe/Berlin\" or \"+02:00\"";
        problems.add(&format!("{key}.time_zone"), format!("{zone:?} is not valid: {valid}"));
    }
    if let Some(Err(problem)) = outbox.filter.as_deref().map(condition::check) {
        problems.add(&format!("{key}.filter"), problem);
    }
}

/// The final states whose settlements write `processed_at`.
fn processed_at_on(key: &str, outbox: &Outbox, problems: &mut Problems) -> BTreeSet<Status> {
    let Some(written) = &outbox.processed_at_on else { return FINAL.into() };
    let key = format!("{key}.processed_at_on");
    let words = FINAL.map(Status::as_str);
    if outbox.columns.processed_at.is_none() {
        problems.add(&key, "does nothing without columns.processed_at: valid only beside it");
    }
    if written.is_empty() {
        let valid = quoted(&words);
        problems.add(&key, format!("is empty: valid are {valid}; leave out columns.processed_at instead"));
    }
    let mut states = BTreeSet::new();
    for word in written {
        match FINAL.into_iter().find(|state| state.as_str() == word) {
            Some(Status::Skipped) if outbox.status.skipped.is_none() => {
                problems.add(&key, "\"skipped\" does nothing without status.skipped: valid only beside it");
            }
            Some(state) => {
                states.insert(state);
            }
            None => problems.add(&key, format!("{word:?} is not valid: valid are {}", quoted(&words))),
        }
    }
    states
}

/// What a retention is set for that has no such events or does not write when they ended.
pub(super) fn ageless(outbox: &Outbox, described: &Description) -> Vec<String> {
    let Some(written) = outbox.retention else { return Vec::new() };
    let name = &described.name;
    let mut sentences = Vec::new();
    for (state, time) in [(Status::Completed, written.completed), (Status::Skipped, written.skipped)] {
        if time.is_some() && described.labels.of(state).is_none() {
            sentences.push(format!("outbox {name:?}: retention.{state} does nothing, for there is no status.{state}"));
        } else if time.is_some() && !described.processed_at_on.contains(&state) {
            sentences.push(format!(
                "outbox {name:?}: retention.{state} deletes only what somebody else has given a processed_at, for \
                 processed_at_on leaves {state} out"
            ));
        }
    }
    sentences
}

/// How long finished events are kept, if they are ever to be deleted.
fn retention(key: &str, outbox: &Outbox, problems: &mut Problems) -> Option<Retention> {
    let written = outbox.retention?;
    for (state, time) in [(Status::Completed, written.completed), (Status::Skipped, written.skipped)] {
        let Some(time) = time else { continue };
        let key = format!("{key}.retention.{state}");
        duration_range(problems, &key, time, Duration::from_secs(1), LONGEST);
        if outbox.columns.processed_at.is_none() {
            problems.add(&key, "needs columns.processed_at, which tells how old a finished event is");
        }
    }
    (written.completed.is_some() || written.skipped.is_some())
        .then(|| Retention { completed: written.completed.unwrap_or(NEVER), skipped: written.skipped.unwrap_or(NEVER) })
}
