//! What a caller asks to enqueue: its rules, and the fingerprint that tells a replay from a different request.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use uuid::Uuid;

use super::trace::TraceContext;
use super::{
    DEFAULT_MAX_ATTEMPTS, MAX_ATTEMPTS_LIMIT, MAX_IDEMPOTENCY_KEY_CHARS, MAX_SUBJECT_CHARS, MAX_TYPE_CHARS,
    check_event_headers,
};
use crate::json;
use crate::timestamp::Timestamp;

/// The longest delay at enqueue: ten years.
pub const MAX_DELAY_MS: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// When a new event becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Due {
    /// At once, by the database's clock.
    #[default]
    Now,
    /// So many milliseconds from now, by the database's clock.
    AfterMs(u64),
    /// At an instant; one in the past is due at once, before younger events.
    At(Timestamp),
}

/// A request to enqueue one event. [`NewEvent::problems`] judges it before a store sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The caller's own id, any but nil; the database makes one when there is none.
    pub id: Option<Uuid>,
    /// 1–200 characters of `A–Z a–z 0–9 . _ : / -`.
    pub event_type: String,
    /// At most 255 characters.
    pub subject: Option<String>,
    /// JSON text, kept byte for byte.
    pub payload: String,
    /// At most 16, see [`check_event_headers`].
    pub headers: BTreeMap<String, String>,
    /// When it becomes due.
    pub due: Due,
    /// 1–100.
    pub max_attempts: i32,
    /// At most 255 characters of visible ASCII.
    pub idempotency_key: Option<String>,
    /// The trace in which it is enqueued, kept beside `headers` that have none of their own.
    pub trace: Option<TraceContext>,
}

/// One field of a request that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// JSON pointer (RFC 6901) to the field.
    pub pointer: String,
    /// What is wrong and what would be valid.
    pub detail: String,
}

impl NewEvent {
    /// An event of this type and payload that is due at once, with every default.
    #[must_use]
    pub fn new(event_type: impl Into<String>, payload: impl Into<String>) -> Self {
        Self {
            id: None,
            event_type: event_type.into(),
            subject: None,
            payload: payload.into(),
            headers: BTreeMap::new(),
            due: Due::Now,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            idempotency_key: None,
            trace: None,
        }
    }

    /// The headers as they are to be kept: those that were asked for, and the trace.
    #[must_use]
    pub fn kept_headers(&self) -> BTreeMap<String, String> {
        let mut headers = self.headers.clone();
        if let Some(trace) = &self.trace {
            trace.add_to(&mut headers);
        }
        headers
    }

    /// Everything that is wrong with the request; empty when it may be stored. The payload must be JSON already, which
    /// an HTTP body's is once it has been read; its size is the caller's to limit.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldProblem> {
        let checks = [
            ("/id", self.id.map_or(Ok(()), check_id)),
            ("/type", check_event_type(&self.event_type)),
            ("/payload", json::check(&self.payload).map_err(|problem| problem.to_string())),
            ("/subject", self.subject.as_deref().map_or(Ok(()), check_subject)),
            ("/headers", check_event_headers(&self.headers).map_err(|problem| problem.to_string())),
            ("/max_attempts", check_max_attempts(self.max_attempts)),
            ("/delay_ms", check_due(self.due)),
            ("/idempotency_key", self.idempotency_key.as_deref().map_or(Ok(()), check_idempotency_key)),
        ];
        checks
            .into_iter()
            .filter_map(|(pointer, check)| {
                check.err().map(|detail| FieldProblem { pointer: pointer.to_owned(), detail })
            })
            .collect()
    }

    /// SHA-256 over the request as it was given (all but id, key and trace), each part as a netstring. Postgres'
    /// `outbox.enqueue` computes the same bytes, so that a replay may come by either way.
    #[must_use]
    pub fn fingerprint(&self) -> Vec<u8> {
        let mut text = String::with_capacity(self.payload.len() + 256);
        netstring(&mut text, Some(&self.event_type));
        netstring(&mut text, Some(&self.payload));
        netstring(&mut text, self.subject.as_deref());
        let due = match self.due {
            Due::Now | Due::AfterMs(0) => String::new(),
            Due::AfterMs(ms) => format!("+{ms}"),
            Due::At(at) => format!("@{}", at.as_micros()),
        };
        netstring(&mut text, Some(&due));
        netstring(&mut text, Some(&self.max_attempts.to_string()));
        for (name, value) in &self.headers {
            netstring(&mut text, Some(name));
            netstring(&mut text, Some(value));
        }
        digest(&SHA256, text.as_bytes()).as_ref().to_vec()
    }
}

/// `length:text,` with the length in bytes; `-` for what is absent.
fn netstring(into: &mut String, part: Option<&str>) {
    match part {
        Some(part) => {
            let _ = write!(into, "{}:{part},", part.len());
        }
        None => into.push('-'),
    }
}

fn check_id(id: Uuid) -> Result<(), String> {
    if id.is_nil() { Err("must not be the nil UUID".to_owned()) } else { Ok(()) }
}

/// Judges an event type.
///
/// # Errors
/// A sentence that names what would be valid.
pub fn check_event_type(event_type: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
    if (1..=MAX_TYPE_CHARS).contains(&event_type.len()) && event_type.bytes().all(allowed) {
        Ok(())
    } else {
        Err("must be 1 to 200 characters of A-Z a-z 0-9 . _ : / -".to_owned())
    }
}

/// Judges an idempotency key.
///
/// # Errors
/// A sentence that names what would be valid.
pub fn check_idempotency_key(key: &str) -> Result<(), String> {
    let visible = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if (1..=MAX_IDEMPOTENCY_KEY_CHARS).contains(&key.len()) && visible {
        Ok(())
    } else {
        Err("must be 1 to 255 characters of visible ASCII".to_owned())
    }
}

fn check_subject(subject: &str) -> Result<(), String> {
    if subject.chars().count() > MAX_SUBJECT_CHARS {
        return Err("must be at most 255 characters".to_owned());
    }
    if subject.chars().any(char::is_control) {
        return Err("must not contain control characters".to_owned());
    }
    Ok(())
}

fn check_max_attempts(max_attempts: i32) -> Result<(), String> {
    if (1..=MAX_ATTEMPTS_LIMIT).contains(&max_attempts) { Ok(()) } else { Err("must be 1 to 100".to_owned()) }
}

fn check_due(due: Due) -> Result<(), String> {
    match due {
        Due::AfterMs(ms) if ms > MAX_DELAY_MS => Err("must be at most ten years (316224000000)".to_owned()),
        Due::Now | Due::AfterMs(_) | Due::At(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_event_has_no_problems() {
        assert_eq!(NewEvent::new("invoice.created", r#"{"n":1}"#).problems(), []);
    }

    #[test]
    fn every_bad_field_is_named_by_its_pointer() {
        let mut event = NewEvent::new("a b", r#""\ud800""#);
        event.id = Some(Uuid::nil());
        event.subject = Some("x".repeat(256));
        event.headers.insert("host".to_owned(), "evil".to_owned());
        event.max_attempts = 0;
        event.due = Due::AfterMs(u64::MAX);
        event.idempotency_key = Some(String::new());
        let pointers: Vec<String> = event.problems().into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(
            pointers,
            ["/id", "/type", "/payload", "/subject", "/headers", "/max_attempts", "/delay_ms", "/idempotency_key"]
        );
    }

    #[test]
    fn the_fingerprint_tells_every_part_apart_and_ignores_id_and_key() {
        let base = NewEvent::new("a", "1");
        let changed: [fn(&mut NewEvent); 6] = [
            |event| event.event_type = "b".to_owned(),
            |event| event.payload = "1.0".to_owned(),
            |event| event.subject = Some(String::new()),
            |event| event.due = Due::AfterMs(1),
            |event| event.max_attempts = 9,
            |event| _ = event.headers.insert("x-a".to_owned(), String::new()),
        ];
        for change in changed {
            let mut event = base.clone();
            change(&mut event);
            assert_ne!(event.fingerprint(), base.fingerprint(), "{event:?}");
        }
        let mut same = base.clone();
        same.id = Some(Uuid::nil());
        same.idempotency_key = Some("k".to_owned());
        same.due = Due::AfterMs(0);
        assert_eq!(same.fingerprint(), base.fingerprint());
    }
}
