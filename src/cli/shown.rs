//! Answers as people read them: tables and lines. Texts from data are shown without control characters, which a terminal would
//! obey.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Characters of an error in a table.
const ERROR_CHARS: usize = 60;

/// A page of events as the interface writes it.
#[derive(Deserialize)]
pub(super) struct Page {
    data: Vec<EventText>,
    next_cursor: Option<String>,
}

/// An event, as far as it is shown.
#[derive(Deserialize)]
pub(super) struct EventText {
    id: String,
    outbox: String,
    #[serde(rename = "type")]
    event_type: String,
    subject: Option<String>,
    status: String,
    attempts: i64,
    max_attempts: i64,
    requeues: i64,
    available_at: String,
    lease_until: Option<String>,
    created_at: String,
    processed_at: Option<String>,
    dead_at: Option<String>,
    last_error: Option<String>,
    idempotency_key: Option<String>,
    payload: Option<Box<RawValue>>,
    #[serde(default)]
    attempts_log: Vec<AttemptText>,
    #[serde(default)]
    actions_log: Vec<ActionText>,
}

#[derive(Deserialize)]
struct AttemptText {
    number: i64,
    started_at: String,
    duration_ms: i64,
    outcome: String,
    status_code: Option<i64>,
    error: Option<String>,
    response: Option<String>,
}

#[derive(Deserialize)]
struct ActionText {
    action: String,
    actor: String,
    at: String,
    note: Option<String>,
}

/// A page as a table, and how to go on.
pub(super) fn page(page: Page, nothing: &str) -> String {
    let mut shown = if page.data.is_empty() && page.next_cursor.is_none() {
        nothing.to_owned()
    } else {
        let head = ["id", "status", "type", "subject", "attempts", "since", "error"].map(str::to_owned);
        let rows = page.data.into_iter().map(|event| {
            let since = event.dead_at.or(event.processed_at).unwrap_or(event.created_at);
            [
                event.id,
                event.status,
                event.event_type,
                event.subject.unwrap_or_default(),
                format!("{}/{}", event.attempts, event.max_attempts),
                since,
                cut(&event.last_error.unwrap_or_default()),
            ]
        });
        table(std::iter::once(head).chain(rows))
    };
    if let Some(cursor) = page.next_cursor {
        let _ = write!(shown, "\nthere is more: --cursor {}", plain(&cursor));
    }
    shown
}

/// One event, a line for each thing that is known of it.
pub(super) fn event(event: EventText) -> String {
    let mut lines = String::new();
    let attempts = format!("{} of {}", event.attempts, event.max_attempts);
    let payload = event.payload.map(|payload| payload.get().to_owned());
    for (name, value) in [
        ("id", Some(event.id)),
        ("outbox", Some(event.outbox)),
        ("type", Some(event.event_type)),
        ("subject", event.subject),
        ("status", Some(event.status)),
        ("attempts", Some(attempts)),
        ("requeues", (event.requeues > 0).then(|| event.requeues.to_string())),
        ("created at", Some(event.created_at)),
        ("due at", Some(event.available_at)),
        ("lease until", event.lease_until),
        ("ended at", event.processed_at),
        ("key", event.idempotency_key),
        ("error", event.last_error),
        ("payload", payload),
    ] {
        if let Some(value) = value {
            let _ = writeln!(lines, "{name:<12}{}", plain(&value));
        }
    }
    for attempt in event.attempts_log {
        let AttemptText { number, started_at, duration_ms, outcome, .. } = &attempt;
        let status = attempt.status_code.map_or_else(String::new, |code| format!(" {code}"));
        let error = attempt.error.as_deref().map_or_else(String::new, |error| format!(": {}", plain(error)));
        let _ = writeln!(
            lines,
            "attempt {number} {} {} after {duration_ms} ms{status}{error}",
            plain(started_at),
            plain(outcome)
        );
        if let Some(response) = attempt.response.as_deref().filter(|response| !response.is_empty()) {
            let _ = writeln!(lines, "  answer    {}", plain(response));
        }
    }
    for action in event.actions_log {
        let ActionText { action, actor, at, note } = action;
        let note = note.map_or_else(String::new, |note| format!(": {}", plain(&note)));
        let _ = writeln!(lines, "{} {} by {}{note}", plain(&action), plain(&at), plain(&actor));
    }
    lines.truncate(lines.trim_end().len());
    lines
}

/// Columns as wide as their longest text; the last one is not filled up.
fn table<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.map(|row| row.map(|cell| plain(&cell))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text whose control characters are written out, and those that would turn the order of what stands around them.
pub(in crate::cli) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if letter.is_control() || turns { shown.extend(letter.escape_default()) } else { shown.push(letter) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"id":"1","outbox":"default","type":"a.b","subject":"s\u001b[31m","status":"dead_letter","attempts":1,
        "max_attempts":10,"requeues":0,"available_at":"t1","locked_at":null,"lease_until":null,"created_at":"t0",
        "processed_at":"t2","dead_at":"t2","last_error":"no\nroute","idempotency_key":null,"headers":{},
        "payload":{"n":9007199254740993},
        "attempts_log":[{"number":1,"started_at":"t1","duration_ms":7,"outcome":"dead_letter","status_code":410,"error":"gone","response":null}],
        "actions_log":[{"action":"requeue","actor":"alice","at":"t3","note":"fixed"}]}"#;

    #[test]
    fn an_event_is_shown_with_its_logs_and_nothing_in_it_reaches_the_terminal() {
        let shown = event(serde_json::from_str(EVENT).unwrap());
        for line in [
            "subject     s\\u{1b}[31m",
            "error       no\\nroute",
            "payload     {\"n\":9007199254740993}",
            "attempt 1 t1 dead_letter after 7 ms 410: gone",
            "requeue t3 by alice: fixed",
        ] {
            assert!(shown.lines().any(|there| there == line), "{line}: {shown}");
        }
    }

    #[test]
    fn a_page_is_a_table_that_says_how_to_go_on() {
        let read = |text: &str| serde_json::from_str::<Page>(text).unwrap();
        let shown = page(read(&format!(r#"{{"data":[{EVENT}],"next_cursor":"abc"}}"#)), "nothing");
        let lines: Vec<&str> = shown.lines().collect();
        assert!(
            lines[0].starts_with("id  status       type  subject") && lines[1].starts_with("1   dead_letter  a.b"),
            "{shown}"
        );
        assert_eq!((lines.len(), lines[2]), (3, "there is more: --cursor abc"));
        assert_eq!(page(read(r#"{"data":[],"next_cursor":null}"#), "nothing"), "nothing");
    }
}
