//! What statements change beside the status, as far as the table has it: pieces of SET lists, each behind a comma, and the
//! columns of an INSERT.

use std::fmt::Write as _;

use super::catalogue::{Affinity, is_same};
use super::fit::{Fit, IdKind};
use super::names::Parts;
use crate::event::Status;
use crate::store::sqlite::statements::NOW;
use crate::store::table::{Table, quote_identifier};

/// A former claim's instant that lies this far ahead is no clock's doing.
const FAR_AHEAD: i64 = 60_000_000;

#[derive(Default)]
struct Changes {
    settle: String,
    take_back: String,
    skip: String,
    requeue: String,
    bury: String,
}

fn put(list: &mut String, piece: impl std::fmt::Display) {
    // Writing into a text cannot fail.
    let _ = write!(list, ", {piece}");
}

impl Changes {
    /// The instant of the end, for the final states that write it.
    fn ended(&mut self, fit: &Fit<'_>, parts: &Parts, name: &str) {
        let on = |status: Status| fit.outbox.processed_at_on.contains(&status);
        let (ended, now) = (quote_identifier(name), fit.form(name).write(NOW));
        let words = [Status::Completed, Status::DeadLetter, Status::Skipped].into_iter().filter(|status| on(*status));
        let words: Vec<String> = words.map(|status| format!("'{status}'")).collect();
        put(&mut self.settle, format!("{ended} = CASE WHEN ?3 IN ({}) THEN {now} ELSE {ended} END", words.join(", ")));
        if on(Status::DeadLetter) {
            let is_last = format!("{} + 1 >= {}", parts.spent, parts.max_attempts);
            put(&mut self.take_back, format!("{ended} = CASE WHEN {is_last} THEN {now} ELSE {ended} END"));
            put(&mut self.bury, format!("{ended} = {now}"));
        }
        if on(Status::Skipped) {
            put(&mut self.skip, format!("{ended} = {now}"));
        }
        put(&mut self.requeue, format!("{ended} = NULL"));
    }

    /// Why it ended, or failed.
    fn error(&mut self, name: &str) {
        let error = quote_identifier(name);
        put(&mut self.settle, format!("{error} = coalesce(?7, {error})"));
        put(&mut self.take_back, format!("{error} = 'claim expired'"));
        put(&mut self.skip, format!("{error} = coalesce(nullif(?2, ''), {error})"));
    }
}

/// Adds what each change writes.
pub(super) fn with(fit: &Fit<'_>, parts: &Parts, table: Table) -> Table {
    let columns = &fit.outbox.columns;
    let mut changes = Changes::default();
    if let Some(name) = &columns.processed_at {
        changes.ended(fit, parts, name);
    }
    if let Some(max_attempts) = &columns.max_attempts {
        let name = quote_identifier(max_attempts);
        put(&mut changes.requeue, format!("{name} = coalesce(?3, {name})"));
    }
    let why = table.render("{why_never}");
    let (mut bury, mut bury_claimed) = (changes.bury.clone(), std::mem::take(&mut changes.bury));
    if let Some(name) = &columns.last_error {
        changes.error(name);
        let error = quote_identifier(name);
        put(&mut bury, format!("{error} = {why}"));
        put(&mut bury_claimed, format!("{error} = ?3"));
    }
    let due = fit.form(&columns.available_at);
    let lock = fit.form(&columns.locked_at);
    // Greater than the former one where that is still there, so that two claims of one event differ.
    let claimed = format!(
        "max({NOW}, CASE WHEN {former} < {NOW} + {FAR_AHEAD} THEN {former} + {unit} ELSE 0 END)",
        former = format_args!("coalesce({}, 0)", parts.locked_us),
        unit = lock.unit(),
    );
    let count_claim = columns.claim_no.as_ref().map_or_else(String::new, |name| {
        let fence = &parts.fence;
        format!(", {} = {fence} + 1", quote_identifier(name))
    });
    let locked_us = format!("coalesce({}, 0)", parts.locked_us);
    // Where only the instant of a claim tells it from the next one, the next must not begin within the same unit, nor may a
    // lease that is shortened look older than it is.
    let (not_before, not_earlier) = match &columns.claim_no {
        Some(_) => ("0".to_owned(), "0"),
        None => (format!("{locked_us} + {}", lock.unit() + due.unit()), locked_us.as_str()),
    };
    let waits = format!(
        "max({NOW} + ?5 + CASE WHEN ?5 > 0 THEN {} ELSE 0 END, CASE WHEN ?6 THEN {locked_us} + {} ELSE 0 END, {not_before})",
        due.grace(),
        parts.lease
    );
    let available_at = quote_identifier(&columns.available_at);
    let due_settled = format!(
        "CASE WHEN ?5 IS NOT NULL THEN {} WHEN ?3 = 'pending' AND coalesce({}, 0) < {not_before} THEN {} ELSE {available_at} END",
        due.write_up(&waits),
        parts.available_us,
        due.write_up(&not_before),
    );
    let table = table
        .with("claimed_at", lock.write(&claimed))
        .with("count_claim", count_claim)
        .with("extended_at", lock.write_up(&format!("max({NOW} + ?3 - {}, {not_earlier})", parts.lease)))
        .with("due_now", due.write_due(NOW, "0"))
        .with("due_later", due.write_due(NOW, "?2"))
        .with("due_settled", due_settled)
        .with("settle_rest", changes.settle)
        .with("take_back_rest", changes.take_back)
        .with("skip_rest", changes.skip)
        .with("requeue_rest", changes.requeue)
        .with("bury_rest", bury)
        .with("bury_claimed_rest", bury_claimed);
    insert(fit, table)
}

/// The columns that an INSERT names, each once, and their values.
fn insert(fit: &Fit<'_>, table: Table) -> Table {
    let columns = &fit.outbox.columns;
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let mut put = |name: &str, value: String| {
        let column = fit.facts.column(name).filter(|column| !column.generated);
        if let Some(column) = column
            && pairs.iter().all(|(known, _)| !is_same(known, &column.name))
        {
            pairs.push((&column.name, value));
        }
    };
    if fit.id_kind == IdKind::Text {
        put(&columns.id, "?1".to_owned());
    }
    if let Some(event_type) = &columns.event_type {
        put(event_type, "?2".to_owned());
    }
    let is_blob = fit.facts.column(&columns.payload).is_some_and(|column| {
        column.affinity == Affinity::Blob && column.declared.to_ascii_uppercase().contains("BLOB")
    });
    put(&columns.payload, if is_blob { "CAST(?3 AS BLOB)".to_owned() } else { "?3".to_owned() });
    put(&columns.status, fit.label(&fit.outbox.labels.pending));
    put(&columns.attempts, "0".to_owned());
    let due = fit.form(&columns.available_at);
    put(
        &columns.available_at,
        format!("CASE WHEN ?7 IS NULL THEN {} ELSE {} END", due.write_due(NOW, "?8"), due.write_up("?7")),
    );
    put(&columns.created_at, fit.form(&columns.created_at).write(NOW));
    for (column, value) in [(&columns.subject, "?4"), (&columns.headers, "?5"), (&columns.max_attempts, "?6")] {
        if let Some(name) = column {
            put(name, value.to_owned());
        }
    }
    let (names, values): (Vec<String>, Vec<String>) =
        pairs.into_iter().map(|(name, value)| (quote_identifier(name), value)).unzip();
    table.with("insert_columns", names.join(", ")).with("insert_values", values.join(", "))
}
