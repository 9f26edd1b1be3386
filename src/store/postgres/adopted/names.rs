//! Every name that the statements of an adopted table use, rendered once. Identifiers are quoted here and nowhere else;
//! labels are literals of the status column's own type.

use std::fmt::Write as _;

use super::fit::{Fit, IdKind, PayloadKind};
use super::lists::list_names;
use super::literals::{literal, shown, tick};
use crate::event::Status;
use crate::store::micros;
use crate::store::postgres::inspect::facts::{Column, Kind};
use crate::store::table::{Table, quote_identifier};

/// Attempts that any integer column can hold, one more included.
const MOST_ATTEMPTS: u32 = 30_000;

/// The condition of a table whose rows all have what makes them claimable.
pub(super) const NEVER: &str = "false";

pub(super) fn names(fit: &Fit<'_>, max_payload_bytes: usize) -> Table {
    let (outbox, columns) = (fit.outbox, &fit.outbox.columns);
    let table = columns_of(fit, Table::bare().with("events", fit.facts.quoted_name()));
    let table = labels_of(fit, table);
    let lease = format!("interval '{} microseconds'", micros(outbox.lease));
    let filter = outbox.filter.as_ref().map_or_else(|| "true".to_owned(), |filter| format!("({filter})"));
    let table = table
        .with("lease", lease)
        .with("filter", filter)
        .with("max_payload_bytes", max_payload_bytes.to_string())
        .with("id_type", fit.type_of(&columns.id))
        .with("actions", "outbox.action")
        .with("outbox_name", literal(&outbox.name))
        .with("order_by", quote_identifier(outbox.order_by.as_ref().unwrap_or(&columns.available_at)));
    // A value written from now() and rounded up to the column's precision is due at once.
    let tick = tick(fit.type_of(&columns.available_at));
    let is_due =
        table.render(&format!("e.{{available_at}} <= (now() + interval '{tick} microseconds') {{available_at_zone}}"));
    // Compared bare, so that an index serves, and as an instant: where the zone has a summer time, local clocks jump, and no
    // lease may end early by that.
    let is_expired = table.render(
        "(e.{locked_at} < (now() - {lease}) {locked_at_zone} AND e.{locked_at} {locked_at_zone} < now() - {lease} \
         OR e.{locked_at} IS NULL)",
    );
    let of = |lane: &str| match &columns.event_type {
        Some(name) => format!("e.{} = {lane}::{}", quote_identifier(name), type_of_types(fit, name)),
        None => format!("{lane} = {}", fixed_type(fit)),
    };
    let fence = match &columns.claim_no {
        Some(name) => format!("coalesce(e.{}, 0)::bigint", quote_identifier(name)),
        None => table.render(
            "CASE WHEN isfinite(e.{locked_at}) THEN (extract(epoch FROM e.{locked_at} {locked_at_zone}) * 1000000)::bigint END",
        ),
    };
    // Where only the instant of a claim tells it from the next one, the next must not begin within the same unit, not even
    // when both instants are rounded; nor may a lease that is shortened look older than it is.
    let unit = tick.max(self::tick(fit.type_of(&columns.locked_at))).max(1);
    let (not_before, not_earlier) = match &columns.claim_no {
        Some(_) => {
            ("NULL::timestamptz {available_at_zone}".to_owned(), "NULL::timestamptz {locked_at_zone}".to_owned())
        }
        None => (
            format!(
                "(e.{{locked_at}} {{locked_at_zone}} + interval '{} microseconds') {{available_at_zone}}",
                4 * unit
            ),
            "e.{locked_at}".to_owned(),
        ),
    };
    let (not_before, not_earlier) = (table.render(&not_before), table.render(&not_earlier));
    let count_claim = columns.claim_no.as_ref().map_or(String::new(), |name| {
        let name = quote_identifier(name);
        format!(", {name} = coalesce(e.{name}, 0) + 1")
    });
    let table = table
        .with("is_due", is_due)
        .with("is_expired", is_expired)
        .with("of_lane", of("lane.event_type"))
        .with("of_one_lane", of("$1::text"))
        .with("fence", fence)
        .with("not_before", not_before)
        .with("not_earlier", not_earlier)
        .with("count_claim", count_claim);
    changes(fit, fragments(fit, table))
}

/// The type of all events, where there is no column of types.
fn fixed_type(fit: &Fit<'_>) -> String {
    literal(fit.outbox.fixed_type.as_deref().unwrap_or_default())
}

fn type_of_types<'a>(fit: &Fit<'a>, name: &str) -> &'a str {
    match fit.column(name).map(|column| &column.kind) {
        Some(Kind::Enum(_)) => fit.type_of(name),
        Some(_) | None => "text",
    }
}

/// Columns, and what stands for those that the table does not have.
fn columns_of(fit: &Fit<'_>, mut table: Table) -> Table {
    let columns = &fit.outbox.columns;
    for (name, column) in [
        ("id", &columns.id),
        ("payload", &columns.payload),
        ("status", &columns.status),
        ("attempts", &columns.attempts),
        ("available_at", &columns.available_at),
        ("locked_at", &columns.locked_at),
        ("created_at", &columns.created_at),
    ] {
        table = table.with(name, quote_identifier(column));
    }
    let zone = |column: Option<&String>| {
        let is_zoneless = column
            .and_then(|name| fit.column(name))
            .is_some_and(|column| column.kind == Kind::Instant { zoned: false });
        if is_zoneless { format!("AT TIME ZONE {}", literal(&fit.outbox.time_zone)) } else { String::new() }
    };
    for (name, column) in [
        ("available_at_zone", Some(&columns.available_at)),
        ("locked_at_zone", Some(&columns.locked_at)),
        ("created_at_zone", Some(&columns.created_at)),
        ("processed_at_zone", columns.processed_at.as_ref()),
    ] {
        table = table.with(name, zone(column));
    }
    let event_type = match &columns.event_type {
        Some(name) => format!("e.{}::text", quote_identifier(name)),
        None => format!("{}::text", fixed_type(fit)),
    };
    let text = |column: Option<&String>| {
        column.map_or("NULL::text".to_owned(), |name| format!("e.{}::text", quote_identifier(name)))
    };
    let limit = fit.outbox.max_attempts;
    let max_attempts = columns.max_attempts.as_ref().map_or(format!("{limit}"), |name| {
        format!("least(coalesce(e.{}, {limit})::bigint, 1000000)::integer", quote_identifier(name))
    });
    table
        .with("type_column", columns.event_type.as_ref().map_or("NULL".to_owned(), |name| quote_identifier(name)))
        .with("event_type", event_type)
        .with("subject", text(columns.subject.as_ref()))
        .with("headers", text(columns.headers.as_ref()))
        .with("last_error", text(columns.last_error.as_ref()))
        .with("max_attempts", max_attempts)
        .with(
            "spent",
            format!("least(coalesce(e.{}, 0)::bigint, {MOST_ATTEMPTS})::integer", quote_identifier(&columns.attempts)),
        )
        .with("id_text", format!("e.{}::text", quote_identifier(&columns.id)))
}

fn labels_of(fit: &Fit<'_>, mut table: Table) -> Table {
    let of_status = fit.type_of(&fit.outbox.columns.status);
    let labels = &fit.outbox.labels;
    let cast = |label: &str| format!("{}::{of_status}", literal(label));
    let mut words = String::new();
    for status in Status::ALL {
        let name = status.as_str();
        if let Some(label) = labels.of(status) {
            let _ = write!(words, " WHEN {} THEN '{name}'", cast(label));
        }
        // What a receiver skips is done with, also where the table has no word for it.
        table = table.with(name, cast(labels.of(status).unwrap_or(&labels.completed)));
    }
    let word = table.render(&format!("CASE e.{{status}}{words} ELSE 'unknown' END"));
    table.with("status_word", word).with("has_skipped", labels.skipped.is_some().to_string())
}

/// The parts that several statements share.
fn fragments(fit: &Fit<'_>, table: Table) -> Table {
    let columns = &fit.outbox.columns;
    let payload_text = match fit.payload_kind() {
        PayloadKind::Bytes => table.render("e.{payload}"),
        PayloadKind::Json | PayloadKind::JsonB | PayloadKind::Text => {
            table.render("convert_to(e.{payload}::text, 'UTF8')")
        }
    };
    let payload_value = match fit.payload_kind() {
        PayloadKind::JsonB => table.render("e.{payload} ->> $2"),
        PayloadKind::Json => table.render("outbox.payload_text(e.{payload}, $2)"),
        PayloadKind::Text | PayloadKind::Bytes => "nullif($2, $2)".to_owned(),
    };
    let [available_at, created_at, locked_at] = ["available_at", "created_at", "locked_at"]
        .map(|name| shown(&table.render(&format!("e.{{{name}}} {{{name}_zone}}"))));
    let processed_at = match &columns.processed_at {
        Some(_) => shown(&table.render(&format!("{} {{processed_at_zone}}", ended(fit)))),
        None => "NULL::timestamptz".to_owned(),
    };
    let dead_at = format!("coalesce({processed_at}, {available_at}, {created_at}, 'epoch'::timestamptz)");
    // Where nobody has written when an event ended, nobody can tell how long ago that was: it stays.
    let ended_at = processed_at.clone();
    let table = table
        .with("payload_text", payload_text)
        .with("payload_value", payload_value)
        .with("dead_at", dead_at)
        .with("ended_at", ended_at);
    let in_claim = match fit.payload_kind() {
        // Read afterwards.
        PayloadKind::JsonB => "NULL::bytea, 0".to_owned(),
        PayloadKind::Json | PayloadKind::Text | PayloadKind::Bytes => table.render(
            "CASE WHEN octet_length({payload_text}) <= {max_payload_bytes} THEN {payload_text} END, coalesce(octet_length({payload_text}), 0)",
        ),
    };
    let claimed = format!(
        "{{id_text}}, {{fence}}, {{event_type}}, {{subject}}, {in_claim}, {{headers}}, {{spent}}, \
         {{max_attempts}}, {created_at}, {available_at}, \
         (extract(epoch FROM now() - {available_at}) * 1000000)::bigint"
    );
    let event = format!(
        "{{id_text}} AS id, coalesce({{event_type}}, '') AS event_type, {{subject}} AS subject, {{headers}} AS headers, \
         {{status_word}} AS status, {{spent}} AS attempts, {{max_attempts}} AS max_attempts, \
         {available_at} AS available_at, {locked_at} AS locked_at, coalesce({{fence}}, 0) AS claim_no, \
         {created_at} AS created_at, {processed_at} AS processed_at, {{dead_at}} AS dead_at, {{last_error}} AS last_error"
    );
    let lanes = match &columns.event_type {
        None => format!("SELECT {event_type} AS event_type", event_type = table.render("{event_type}")),
        Some(_) if fit.has_lane_index() => table.render(include_str!("sql/lanes_by_index.sql")),
        Some(_) => table.render(
            "SELECT DISTINCT e.{type_column} AS event_type FROM {events} AS e WHERE e.{status} = {pending} AND {filter}",
        ),
    };
    let lanes_in = |status: &str| match &columns.event_type {
        None => table.render("SELECT {event_type} AS event_type"),
        Some(_) => table.render(&include_str!("sql/lanes_by_index.sql").replace("{pending}", status)),
    };
    let [pending, processing, dead_letter] = ["{pending}", "{processing}", "{dead_letter}"].map(lanes_in);
    let (claimed, event) = (table.render(&claimed), table.render(&event));
    let table = table
        .with("created_instant", created_at)
        .with("lanes_pending", pending)
        .with("lanes_processing", processing)
        .with("lanes_dead_letter", dead_letter);
    list_names(fit, table.with("claimed_columns", claimed).with("event_columns", event).with("lanes", lanes))
}

/// The column of the end, as statements name it.
fn ended(fit: &Fit<'_>) -> String {
    fit.outbox.columns.processed_at.as_ref().map_or(String::new(), |name| format!("e.{}", quote_identifier(name)))
}

/// What statements change beside the status, as far as the table has it: pieces of SET lists, each behind a comma.
#[derive(Default)]
struct Changes {
    settle_columns: String,
    settle_values: String,
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
    fn ended(&mut self, fit: &Fit<'_>, table: &Table, name: &str) {
        let on = |status: Status| fit.outbox.processed_at_on.contains(&status);
        let (ended, now) = (quote_identifier(name), table.render("now() {processed_at_zone}"));
        let words = [Status::Completed, Status::DeadLetter, Status::Skipped].into_iter().filter(|status| on(*status));
        let words: Vec<String> = words.map(|status| format!("'{status}'")).collect();
        let is_one = if words.is_empty() {
            "false".to_owned()
        } else {
            format!("($3::text[])[place] IN ({})", words.join(", "))
        };
        put(&mut self.settle_columns, &ended);
        put(&mut self.settle_values, format!("CASE WHEN {is_one} THEN {now} ELSE e.{ended} END"));
        if on(Status::DeadLetter) {
            put(
                &mut self.take_back,
                format!("{ended} = CASE WHEN {} THEN {now} ELSE e.{ended} END", table.render("{is_last_attempt}")),
            );
            put(&mut self.bury, format!("{ended} = {now}"));
        }
        if on(Status::Skipped) {
            put(&mut self.skip, format!("{ended} = {now}"));
        }
        put(&mut self.requeue, format!("{ended} = NULL"));
    }

    /// Why it ended, or failed.
    fn error(&mut self, fit: &Fit<'_>, table: &Table, name: &str) {
        let (columns, error) = (&fit.outbox.columns, quote_identifier(name));
        // A column of limited length would refuse a longer text, and with it the settlement.
        let length = fit.column(name).and_then(Column::most_chars);
        let cut = |text: &str| length.map_or_else(|| text.to_owned(), |length| format!("left({text}, {length})"));
        put(&mut self.settle_columns, &error);
        put(&mut self.settle_values, format!("coalesce({}, e.{error})", cut("($7::text[])[place]")));
        put(&mut self.take_back, format!("{error} = {}", cut("'claim expired'")));
        put(&mut self.skip, format!("{error} = {}", cut("$2::text")));
        let undue = literal(&format!("{} is NULL: nobody can say when the event is due", columns.available_at));
        let untyped =
            literal(&format!("{} is NULL: no lane has this event", columns.event_type.as_deref().unwrap_or_default()));
        let why = table.render("CASE WHEN e.{available_at} IS NULL THEN ") + &undue + " ELSE " + &untyped + " END";
        put(&mut self.bury, format!("{error} = {}", cut(&why)));
    }
}

fn changes(fit: &Fit<'_>, table: Table) -> Table {
    let columns = &fit.outbox.columns;
    let is_last = table.render("{spent} + 1 >= {max_attempts}");
    let table = table.with("is_last_attempt", is_last);
    let mut changes = Changes::default();
    if let Some(name) = &columns.processed_at {
        changes.ended(fit, &table, name);
    }
    if let Some(name) = &columns.last_error {
        changes.error(fit, &table, name);
    }
    if let Some(max_attempts) = &columns.max_attempts {
        let name = quote_identifier(max_attempts);
        put(&mut changes.requeue, format!("{name} = coalesce($3, e.{name})"));
    }
    let nullable = |name: Option<&String>| name.and_then(|name| fit.column(name)).filter(|column| column.nullable);
    let never: Vec<String> = [Some(&columns.available_at), columns.event_type.as_ref()]
        .into_iter()
        .filter_map(nullable)
        .map(|column| format!("e.{} IS NULL", quote_identifier(&column.name)))
        .collect();
    let untyped = columns
        .event_type
        .as_ref()
        .map_or_else(|| NEVER.to_owned(), |name| format!("e.{} IS NULL", quote_identifier(name)));
    let table = table
        .with("is_untyped", untyped)
        .with("settle_columns", changes.settle_columns)
        .with("settle_values", changes.settle_values)
        .with("take_back_rest", changes.take_back)
        .with("skip_rest", changes.skip)
        .with("requeue_rest", changes.requeue)
        .with("bury_rest", changes.bury)
        .with("never_claimable", if never.is_empty() { NEVER.to_owned() } else { never.join(" OR ") });
    let taken = table.render(include_str!("sql/take_back.sql"));
    insert(fit, table.with("take_back", taken))
}

/// The columns that an INSERT names, each once, and their values.
fn insert(fit: &Fit<'_>, table: Table) -> Table {
    let columns = &fit.outbox.columns;
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| {
        if pairs.iter().all(|(known, _)| *known != quote_identifier(name)) {
            pairs.push((quote_identifier(name), value));
        }
    };
    if !matches!(fit.id_kind(), IdKind::Number { .. }) {
        put(&columns.id, table.render("$1::text::{id_type}"));
    }
    if let Some(event_type) = &columns.event_type {
        put(event_type, format!("$2::text::{}", fit.type_of(event_type)));
    }
    let payload = match fit.payload_kind() {
        PayloadKind::Bytes => "convert_to($3::text, 'UTF8')".to_owned(),
        PayloadKind::Json | PayloadKind::JsonB | PayloadKind::Text => {
            format!("$3::text::{}", fit.type_of(&columns.payload))
        }
    };
    put(&columns.payload, payload);
    put(&columns.status, table.render("{pending}"));
    put(&columns.attempts, "0".to_owned());
    let due = "coalesce($7::timestamptz, now() + $8::bigint * interval '1 millisecond') {available_at_zone}";
    put(&columns.available_at, table.render(due));
    put(&columns.created_at, table.render("now() {created_at_zone}"));
    for (column, value) in
        [(&columns.subject, "$4::text"), (&columns.headers, "$5::text"), (&columns.max_attempts, "$6::integer")]
    {
        if let Some(name) = column {
            put(name, format!("{value}::{}", fit.type_of(name)));
        }
    }
    let (names, values): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
    // Every argument is used somewhere, so that the server knows its type.
    let table = table.with("insert_columns", names.join(", "));
    table.with("insert_values", values.join(", "))
}
