//! Every name that the statements of an adopted table use, rendered once. Identifiers are quoted here and nowhere else.
//! What has been put in is never searched for names again, so that nothing of it can be taken for one.

use super::catalogue::Affinity;
use super::changes;
use super::fit::{Fit, IdKind};
use super::instants::Form;
use crate::event::Status;
use crate::store::micros;
use crate::store::sqlite::statements::NOW;
use crate::store::table::{Table, quote_identifier};

/// Attempts that any reader of the column can hold.
const MOST_ATTEMPTS: i64 = 1_000_000;

/// An SQL literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The expressions that more than one name is made of.
pub(super) struct Parts {
    pub(super) spent: String,
    pub(super) max_attempts: String,
    pub(super) fence: String,
    pub(super) available_us: String,
    pub(super) locked_us: String,
    pub(super) lease: i64,
    /// The type as text, whatever it is.
    pub(super) event_type: String,
    pub(super) status_word: String,
    /// What is said of a type that is no text; nothing where there is no such column.
    untyped: Vec<String>,
    is_untyped: String,
}

/// A value that is text in any case; read as bytes, for it may be no UTF-8.
pub(super) fn bytes(expression: &str) -> String {
    format!("CAST(CAST({expression} AS TEXT) AS BLOB)")
}

/// All names.
pub(super) fn names(fit: &Fit<'_>) -> Table {
    let (outbox, columns) = (fit.outbox, &fit.outbox.columns);
    let parts = Parts::of(fit);
    let (available, locked) = (quote_identifier(&columns.available_at), quote_identifier(&columns.locked_at));
    let (due, lock) = (fit.form(&columns.available_at), fit.form(&columns.locked_at));
    let filter = outbox.filter.as_ref().map_or_else(|| "1".to_owned(), |filter| format!("({filter})"));
    let of_lane = match &columns.event_type {
        Some(name) => format!("{} = ?1", quote_identifier(name)),
        None => format!("?1 = {}", parts.event_type),
    };
    let of_types = format!("{} IN (SELECT value FROM json_each(?1))", parts.event_type);
    let order_by = quote_identifier(outbox.order_by.as_ref().unwrap_or(&columns.available_at));
    let table = labels(fit, Table::bare())
        .with("events", format!("main.{}", quote_identifier(&fit.facts.table)))
        .with("key", fit.facts.row_number().map_or_else(|| quote_identifier(&columns.id), str::to_owned))
        .with("id", quote_identifier(&columns.id))
        .with("status", quote_identifier(&columns.status))
        .with("attempts", quote_identifier(&columns.attempts))
        .with("available_at", &available)
        .with("locked_at", &locked)
        .with("type_column", &parts.event_type)
        .with("event_type", bytes(&parts.event_type))
        .with("order_by", order_by)
        .with("filter", filter)
        // A number or a text below all others, as the column compares them.
        .with("least_id", if fit.affinity(&columns.id) == Affinity::Text { "''" } else { "-9e999" })
        .with("actions", "main.outbox_action")
        .with("outbox_name", literal(&outbox.name))
        .with("of_lane", of_lane)
        .with("of_types", of_types)
        .with("subject", columns.subject.as_ref().map_or_else(|| "NULL".to_owned(), |name| quote_identifier(name)))
        .with("is_due", due.is_due(&available, NOW))
        .with("is_later", due.is_later(&available, NOW))
        .with("is_expired", lock.is_before(&locked, &format!("{NOW} - {}", parts.lease)))
        .with("id_is_sound", format!("NOT {}", any_of(&nameless(fit))))
        .with("never_claimable", never_claimable(fit, &parts, due))
        .with("why_never", why_never(fit, &parts))
        .with("is_untyped", &parts.is_untyped)
        .with("spent", &parts.spent)
        .with("most_attempts", MOST_ATTEMPTS.to_string())
        .with("is_last_attempt", format!("{} + 1 >= {}", parts.spent, parts.max_attempts))
        .with("fence", &parts.fence)
        .with("status_word", &parts.status_word)
        .with("available_us", &parts.available_us)
        .with("now", NOW);
    let table = asked(fit, &parts, due, table);
    changes::with(fit, &parts, columns_read(fit, &parts, table))
}

impl Parts {
    fn of(fit: &Fit<'_>) -> Self {
        let (outbox, columns) = (fit.outbox, &fit.outbox.columns);
        let number = |name: &str, otherwise: i64| {
            let column = quote_identifier(name);
            format!(
                "(CASE WHEN typeof({column}) = 'integer' THEN max(0, min({column}, {MOST_ATTEMPTS})) ELSE {otherwise} END)"
            )
        };
        let read = |name: &str| fit.form(name).read(&quote_identifier(name));
        let locked_us = read(&columns.locked_at);
        let limit = i64::from(outbox.max_attempts);
        let event_type = columns.event_type.as_ref().map(|name| quote_identifier(name));
        let untyped: Vec<String> = event_type.iter().flat_map(|column| not_of_text(column)).collect();
        let fixed = || literal(outbox.fixed_type.as_deref().unwrap_or_default());
        let labels = Status::ALL.into_iter().filter_map(|status| Some((status, outbox.labels.of(status)?)));
        let words: Vec<String> =
            labels.map(|(status, label)| format!("WHEN {} THEN '{status}'", fit.label(label))).collect();
        Self {
            spent: number(&columns.attempts, 0),
            max_attempts: columns.max_attempts.as_ref().map_or_else(|| limit.to_string(), |name| number(name, limit)),
            fence: columns.claim_no.as_ref().map_or_else(
                || format!("({locked_us})"),
                |name| {
                    let column = quote_identifier(name);
                    format!("(CASE WHEN typeof({column}) = 'integer' THEN {column} ELSE 0 END)")
                },
            ),
            available_us: read(&columns.available_at),
            locked_us,
            lease: micros(outbox.lease),
            event_type: event_type.unwrap_or_else(fixed),
            status_word: format!("CASE {} {} ELSE 'unknown' END", quote_identifier(&columns.status), words.join(" ")),
            is_untyped: any_of(&untyped),
            untyped,
        }
    }
}

fn labels(fit: &Fit<'_>, mut table: Table) -> Table {
    let labels = &fit.outbox.labels;
    for status in Status::ALL {
        // What a receiver skips is done with, also where the table has no word for it.
        table = table.with(status.as_str(), fit.label(labels.of(status).unwrap_or(&labels.completed)));
    }
    table.with("has_skipped", i32::from(labels.skipped.is_some()).to_string())
}

/// What is said of a value that is no text.
fn not_of_text(column: &str) -> [String; 3] {
    [format!("{column} IS NULL"), format!("{column} < ''"), format!("{column} >= x''")]
}

fn any_of(terms: &[String]) -> String {
    if terms.is_empty() { "0".to_owned() } else { format!("({})", terms.join(" OR ")) }
}

/// What is said of a row that cannot be found again by its id.
fn nameless(fit: &Fit<'_>) -> Vec<String> {
    let name = &fit.outbox.columns.id;
    let id = quote_identifier(name);
    match fit.id_kind {
        IdKind::Number if fit.facts.is_row_number(name) => Vec::new(),
        IdKind::Number => vec![format!("{id} IS NULL"), format!("{id} >= ''")],
        IdKind::Text if fit.affinity(name) == Affinity::Numeric => {
            vec![format!("{id} IS NULL"), format!("{id} >= x''"), format!("typeof({id}) = 'real'")]
        }
        IdKind::Text => not_of_text(&id).into(),
    }
}

/// Whether there are rows that nobody could ever claim, in this lane and outside of all lanes. Asked for kind by kind, so
/// that an index leads to each.
fn asked(fit: &Fit<'_>, parts: &Parts, due: Form, table: Table) -> Table {
    let [events, filter, status, pending, processing, of_lane, is_expired] =
        ["{events}", "{filter}", "{status}", "{pending}", "{processing}", "{of_lane}", "{is_expired}"]
            .map(|name| table.render(name));
    let exists = |kinds: Vec<String>| {
        let asked = kinds.iter().map(|kind| format!("EXISTS (SELECT 1 FROM {events} WHERE {kind} AND {filter})"));
        asked.chain(["0".to_owned()]).collect::<Vec<_>>().join(" OR ")
    };
    let never = due.never(&quote_identifier(&fit.outbox.columns.available_at)).into_iter();
    let in_lane = never.map(|never| format!("{status} = {pending} AND {of_lane} AND {never}"));
    let untyped = parts.untyped.iter().flat_map(|untyped| {
        [
            format!("{status} = {pending} AND {untyped}"),
            format!("{status} = {processing} AND {untyped} AND {is_expired}"),
        ]
    });
    // The plus keeps the status out of the choice of an index: the id's own leads here.
    let nameless = nameless(fit).into_iter().map(|nameless| format!("+{status} = {pending} AND {nameless}"));
    let (in_lane, outside) = (exists(in_lane.collect()), exists(untyped.chain(nameless).collect()));
    table.with("has_never_in_lane", in_lane).with("has_never", outside)
}

/// Whether nobody could ever claim a pending row.
fn never_claimable(fit: &Fit<'_>, parts: &Parts, due: Form) -> String {
    let never = due.never(&quote_identifier(&fit.outbox.columns.available_at));
    format!("({} OR {} OR {})", any_of(&never), parts.is_untyped, any_of(&nameless(fit)))
}

/// Why a row cannot be claimed, or not be delivered once it has been: the column that is the matter.
fn why_never(fit: &Fit<'_>, parts: &Parts) -> String {
    let columns = &fit.outbox.columns;
    let said = |name: &str, what: &str| literal(&format!("{name} {what}"));
    let undue = said(&columns.available_at, "is no instant: nobody can say when the event is due");
    let untyped = said(columns.event_type.as_deref().unwrap_or_default(), "is no text: no lane has this event");
    let unnamed = said(&columns.id, "is no id: the event cannot be found again");
    let uncounted = said(&columns.attempts, "is no integer: nobody can say how often the event has failed");
    let attempts = quote_identifier(&columns.attempts);
    format!(
        "CASE WHEN ({}) IS NULL THEN {undue} WHEN {} THEN {untyped} WHEN {} THEN {unnamed} \
         WHEN {attempts} IS NOT NULL AND typeof({attempts}) <> 'integer' THEN {uncounted} END",
        parts.available_us,
        parts.is_untyped,
        any_of(&nameless(fit)),
    )
}

/// What is read of a row.
fn columns_read(fit: &Fit<'_>, parts: &Parts, table: Table) -> Table {
    let columns = &fit.outbox.columns;
    let optional =
        |name: Option<&String>| name.map_or_else(|| "NULL".to_owned(), |name| bytes(&quote_identifier(name)));
    let read = |name: &String| fit.form(name).read(&quote_identifier(name));
    let payload_column = quote_identifier(&columns.payload);
    let is_payload = if fit.affinity(&columns.payload) == Affinity::Numeric {
        // A number that stands for itself in JSON.
        format!("typeof({payload_column}) <> 'null'")
    } else {
        format!("typeof({payload_column}) IN ('text', 'blob')")
    };
    let payload = format!("CASE WHEN {is_payload} THEN CAST({payload_column} AS BLOB) END");
    let payload_within = format!("CASE WHEN length({payload}) <= {{limit}} THEN {payload} END");
    let id = bytes(&quote_identifier(&columns.id));
    let created_us = read(&columns.created_at);
    let processed_us = columns.processed_at.as_ref().map_or_else(|| "NULL".to_owned(), read);
    let dead_us = format!("coalesce({processed_us}, {}, {created_us}, 0)", parts.available_us);
    // Where nobody has written when an event ended, nobody can tell how long ago that was: it stays.
    let ended_us = &processed_us;
    let (subject, headers) = (optional(columns.subject.as_ref()), optional(columns.headers.as_ref()));
    let last_error = optional(columns.last_error.as_ref());
    let Parts { spent, max_attempts, fence, available_us, locked_us, event_type, status_word, .. } = parts;
    let event_type = bytes(event_type);
    table
        .with("id_text", format!("CAST({} AS TEXT)", quote_identifier(&columns.id)))
        .with("id_bytes", &id)
        .with("payload_within", payload_within.replace("{limit}", "?2"))
        .with("payload_in_list", payload_within.replace("{limit}", "?7"))
        .with("payload_in_claim", payload_within.replace("{limit}", "?3"))
        .with("payload_bytes", format!("coalesce(length({payload}), 0)"))
        .with("has_payload", is_payload)
        .with("created_us", &created_us)
        .with("ended_us", ended_us)
        .with(
            "claimed_columns",
            format!(
                "{id}, {fence}, {event_type}, {subject}, {headers}, {spent}, {max_attempts}, {created_us}, {available_us}"
            ),
        )
        .with(
            "event_columns",
            format!(
                "{id}, {event_type}, {subject}, {headers}, {status_word}, {spent}, {max_attempts}, {available_us}, \
                 {locked_us}, coalesce({fence}, 0), {created_us}, {processed_us}, {dead_us}, {last_error}"
            ),
        )
        .with("last_error", columns.last_error.as_ref().map_or_else(|| "NULL".to_owned(), |name| quote_identifier(name)))
        .with("dead_us", dead_us)
}
