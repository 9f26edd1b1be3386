//! The request of one attempt: outboxd's own headers, the route's, the event's; and the payload as it was enqueued.
//!
//! The event's headers are put down first, with the attempt's own span as `traceparent` where it has one; the route's replace them where names meet (the operator's word counts more
//! than data), outboxd's own replace both. `outbox-subject` is the subject as it was enqueued where a header can carry it:
//! printable ASCII that neither begins nor ends with a space. Any other subject is percent-encoded UTF-8 from end to end,
//! its spaces and `%` included. Ids and types of our own tables are plain and go as they are; those of adopted tables are
//! encoded by the same rule where that is needed (an id with a `%`, too), and the signature is made over the id as sent.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::{SigningSecret, WebhookError};
use crate::event::{HeaderProblem, check_event_headers, check_route_header};
use crate::handler::Delivery;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const EVENT_TYPE: HeaderName = HeaderName::from_static("outbox-event-type");
const SUBJECT: HeaderName = HeaderName::from_static("outbox-subject");
const ATTEMPT: HeaderName = HeaderName::from_static("outbox-attempt");
const CLAIM: HeaderName = HeaderName::from_static("outbox-claim");
const CLAIM_TOKEN: HeaderName = HeaderName::from_static("outbox-claim-token");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const DEADLINE_MS: HeaderName = HeaderName::from_static("outbox-deadline-ms");

/// How many headers are outboxd's own, with those that the client adds.
const OWN_HEADERS: usize = 16;

/// Why no request can be made of an event. A plain INSERT can write such a row.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestProblem {
    /// The event carries a header that may not be sent.
    #[error(transparent)]
    Header(#[from] HeaderProblem),
    /// Something that HTTP cannot carry.
    #[error("header {name:?} cannot be sent")]
    Unsendable {
        /// Which one.
        name: String,
    },
    /// The claim did not bring the payload along.
    #[error("the payload was too large to be read")]
    NoPayload,
}

/// Checks the headers of a route.
pub(super) fn route_headers(headers: &BTreeMap<String, String>) -> Result<HeaderMap, WebhookError> {
    let mut checked = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        check_route_header(name, value)?;
        let unsendable = || HeaderProblem { name: name.clone(), reason: "cannot be sent" };
        let (key, mut value) = parsed(name, value).ok_or_else(unsendable)?;
        // Kept out of whatever the HTTP client may print.
        value.set_sensitive(true);
        if checked.insert(key, value).is_some() {
            return Err(WebhookError::HeaderTwice { name: name.to_ascii_lowercase() });
        }
    }
    Ok(checked)
}

/// Makes headers and body of one attempt, stamped and signed for `now`.
pub(super) fn build(
    delivery: &Delivery,
    route_headers: &HeaderMap,
    secrets: &[SigningSecret],
    now: SystemTime,
) -> Result<(HeaderMap, Bytes), RequestProblem> {
    let event = &delivery.event;
    let payload = event.payload.as_deref().ok_or(RequestProblem::NoPayload)?;
    let id = id_text(&event.lease.event_id.to_string());
    let timestamp = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());

    let mut headers = HeaderMap::with_capacity(OWN_HEADERS + route_headers.len() + event.headers.len());
    headers.extend(event_headers(&event.headers)?);
    if let Some(value) = delivery.span().and_then(|span| HeaderValue::try_from(span.traceparent()).ok()) {
        headers.insert(TRACEPARENT, value);
    }
    for (name, value) in route_headers {
        headers.insert(name.clone(), value.clone());
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut own = vec![
        (EVENT_TYPE, header_text(&event.event_type)),
        (ATTEMPT, event.attempt_number().to_string()),
        (CLAIM, event.lease.claim_no.to_string()),
        (DEADLINE_MS, whole_millis(delivery.remaining()).to_string()),
        (WEBHOOK_TIMESTAMP, timestamp.to_string()),
    ];
    if let Some(subject) = &event.subject {
        own.push((SUBJECT, header_text(subject)));
    }
    if let Some(token) = delivery.claim_token() {
        own.push((CLAIM_TOKEN, token));
    }
    if !secrets.is_empty() {
        let signatures: Vec<String> =
            secrets.iter().map(|secret| secret.sign(&id, timestamp, payload.as_bytes())).collect();
        own.push((WEBHOOK_SIGNATURE, signatures.join(" ")));
    }
    own.push((WEBHOOK_ID, id.clone()));
    own.push((IDEMPOTENCY_KEY, id));
    for (name, value) in own {
        let unsendable = |_| RequestProblem::Unsendable { name: name.to_string() };
        let mut value = HeaderValue::try_from(value).map_err(unsendable)?;
        value.set_sensitive(name == CLAIM_TOKEN);
        headers.insert(name, value);
    }
    Ok((headers, Bytes::copy_from_slice(payload.as_bytes())))
}

fn event_headers(headers: &BTreeMap<String, String>) -> Result<HeaderMap, RequestProblem> {
    // The last door before the wire: a row may have been written without any of our checks.
    check_event_headers(headers)?;
    headers
        .iter()
        .map(|(name, value)| parsed(name, value).ok_or_else(|| RequestProblem::Unsendable { name: name.clone() }))
        .collect()
}

fn parsed(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
}

/// Rounded up: who has 29,999.9 ms left has 30 s for the purposes of a receiver.
fn whole_millis(duration: Duration) -> u128 {
    duration.as_micros().div_ceil(1_000)
}

/// The text as it is, or percent-encoded when a header would lose a part of it.
fn header_text(text: &str) -> String {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    // HTTP strips spaces around a value.
    if printable && text.trim_matches(' ') == text { text.to_owned() } else { percent_encoded(text) }
}

/// An id as a header carries it. No two ids look alike there: receivers tell events apart by it.
fn id_text(id: &str) -> String {
    if id.contains('%') { percent_encoded(id) } else { header_text(id) }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_graphic() && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::ClaimedEvent;

    fn built(event: ClaimedEvent, route: &[(&str, &str)]) -> Result<HeaderMap, RequestProblem> {
        let delivery = Delivery::start(event, Duration::from_secs(30));
        let route = route.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let now = UNIX_EPOCH + Duration::from_millis(1_700_000_000_999);
        build(&delivery, &route_headers(&route).unwrap(), &[], now).map(|(headers, _)| headers)
    }

    fn with_header(name: &str, value: &str) -> ClaimedEvent {
        ClaimedEvent { headers: BTreeMap::from([(name.to_owned(), value.to_owned())]), ..ClaimedEvent::example() }
    }

    #[test]
    fn the_routes_header_replaces_the_events() {
        let headers = built(with_header("X-Tenant", "event"), &[("x-tenant", "route")]).unwrap();
        assert_eq!(headers.get_all("x-tenant").iter().collect::<Vec<_>>(), ["route"]);
        assert_eq!(headers["webhook-timestamp"], "1700000000");
        assert!(!headers.contains_key("webhook-signature") && !headers.contains_key("outbox-subject"));
    }

    #[test]
    fn a_row_that_nobody_checked_is_a_problem_and_no_panic() {
        for (name, value) in [("", "v"), ("a b", "v"), ("x-a", "a\r\nb: c"), ("host", "evil"), ("authorization", "v")] {
            assert!(matches!(built(with_header(name, value), &[]), Err(RequestProblem::Header(_))), "{name:?}");
        }
        let unread = ClaimedEvent { payload: None, ..ClaimedEvent::example() };
        assert_eq!(built(unread, &[]), Err(RequestProblem::NoPayload));
    }

    #[test]
    fn ids_and_types_of_adopted_tables_always_make_a_request() {
        for (text, sent) in [("42", "42"), ("Ä\n1", "%C3%84%0A1"), ("a b", "a b"), ("", ""), (" x", "%20x")] {
            let mut event = ClaimedEvent { event_type: text.to_owned(), ..ClaimedEvent::example() };
            event.lease.event_id = crate::event::EventId::from_text(text);
            let headers = built(event, &[]).unwrap();
            for name in ["webhook-id", "idempotency-key", "outbox-event-type"] {
                assert_eq!(headers[name], sent, "{name} {text:?}");
            }
        }
        assert_ne!(id_text("Ä"), id_text("%C3%84"));
    }

    #[test]
    fn a_subject_goes_as_it_was_enqueued_unless_a_header_would_lose_a_part_of_it() {
        let sent = |text: &str| {
            let event = ClaimedEvent { subject: Some(text.to_owned()), ..ClaimedEvent::example() };
            built(event, &[]).unwrap()["outbox-subject"].to_str().unwrap().to_owned()
        };
        for plain in ["order/42", "a b", "50%", "100%25", "~!\"#", ""] {
            assert_eq!(sent(plain), plain);
        }
        for (text, encoded) in [
            ("50% Müller", "50%25%20M%C3%BCller"),
            (" a", "%20a"),
            ("a b ", "a%20b%20"),
            ("a\tb\n", "a%09b%0A"),
            ("\u{7f}", "%7F"),
        ] {
            assert_eq!(sent(text), encoded, "{text:?}");
        }
    }
}
