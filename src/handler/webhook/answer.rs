//! From an answer's head to an outcome: the receiver's own word first, then the route's, then the status.
//!
//! 1. `Outbox-Outcome` (complete, retry, defer, skip, `dead_letter`; accepted with a 2xx), in any case of letters, with
//!    `Retry-After` and `Outbox-Reason`. A word that is unknown is a retry that says so.
//! 2. A status in the route's `dead_letter_on` gives the event up at once.
//! 3. 2xx completes, 410 skips, 429 defers, 503 with a readable `Retry-After` defers, anything else is tried again.
//!
//! The mapping is pure; `now` is used only to read a `Retry-After` that is a date, and only when the receiver does not
//! tell its own time.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};

use crate::outcome::{MAX_ERROR_CHARS, Outcome};
use crate::retry::MAX_DELAY;

const OUTCOME: &str = "outbox-outcome";
const REASON: &str = "outbox-reason";
const MAX_WORD_CHARS: usize = 40;
/// A receiver's clock that is further off than this is not believed.
const MAX_CLOCK_SKEW: Duration = Duration::from_hours(24);

/// What of an answer decides.
pub(super) struct Head<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
}

/// What an answer means.
pub(super) fn outcome_of(head: &Head<'_>, dead_letter_on: &[u16], now: SystemTime) -> Outcome {
    let retry_after = retry_after(head.headers, now);
    let status = status_text(head.status);
    if head.headers.contains_key(OUTCOME) {
        return outcome_of_word(head, &status, retry_after);
    }
    let code = head.status.as_u16();
    if dead_letter_on.contains(&code) {
        return Outcome::DeadLetter { error: status };
    }
    match code {
        200..=299 => Outcome::Complete,
        300..=399 => Outcome::Retry { error: format!("{status} (redirects are not followed)"), retry_after },
        410 => Outcome::Skip { reason: "gone".to_owned() },
        429 => Outcome::Defer { delay: retry_after, reason: status },
        503 if retry_after.is_some() => Outcome::Defer { delay: retry_after, reason: status },
        _ => Outcome::Retry { error: status, retry_after },
    }
}

fn outcome_of_word(head: &Head<'_>, status: &str, retry_after: Option<Duration>) -> Outcome {
    let reason = head.headers.get(REASON).map(|value| clean_text(value.as_bytes(), MAX_ERROR_CHARS));
    let reason = reason.filter(|text| !text.is_empty());
    let error = |without: &str| match &reason {
        Some(reason) => format!("{status}: {reason}"),
        None => format!("{status}: {without}"),
    };
    let words: Vec<&[u8]> = head.headers.get_all(OUTCOME).iter().map(HeaderValue::as_bytes).collect();
    let word = clean_text(&words.join(&b", "[..]), MAX_WORD_CHARS);
    match word.to_ascii_lowercase().as_str() {
        "complete" => Outcome::Complete,
        "retry" => Outcome::Retry { error: error("the receiver asks for a retry"), retry_after },
        "defer" => Outcome::Defer {
            delay: retry_after,
            reason: reason.unwrap_or_else(|| format!("{status}: deferred by the receiver")),
        },
        "skip" => Outcome::Skip { reason: reason.unwrap_or_else(|| "skipped by the receiver".to_owned()) },
        "dead_letter" => Outcome::DeadLetter { error: error("given up by the receiver") },
        "accepted" if head.status.is_success() => Outcome::Accepted,
        "accepted" => {
            Outcome::Retry { error: format!("{status}: Outbox-Outcome \"accepted\" needs a 2xx status"), retry_after }
        }
        _ => Outcome::Retry { error: format!("{status}: unknown Outbox-Outcome {word:?}"), retry_after },
    }
}

fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("HTTP {} {reason}", status.as_u16()),
        None => format!("HTTP {}", status.as_u16()),
    }
}

/// How long the receiver wants to be left alone, at most a day; `None` when it does not say so readably.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that do not fit are simply very many seconds.
        return Some(text.parse().map_or(MAX_DELAY, Duration::from_secs).min(MAX_DELAY));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    let told = headers.get(DATE).and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
    let from = told.filter(|told| apart(*told, now) <= MAX_CLOCK_SKEW).unwrap_or(now);
    Some(at.duration_since(from).unwrap_or_default().min(MAX_DELAY))
}

fn apart(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|error| error.duration())
}

/// Foreign bytes as one bounded line of text.
pub(super) fn clean_text(bytes: &[u8], limit: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().chars().take(limit).collect()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use reqwest::header::HeaderName;

    use super::*;

    const NOW_SECONDS: u64 = 1_700_000_000; // Tue, 14 Nov 2023 22:13:20 GMT

    fn outcome(status: u16, headers: &[(&str, &str)]) -> Outcome {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
                (name.parse::<HeaderName>().unwrap(), value)
            })
            .collect();
        let head = Head { status: StatusCode::from_u16(status).unwrap(), headers: &headers };
        outcome_of(&head, &[400, 429], UNIX_EPOCH + Duration::from_secs(NOW_SECONDS))
    }

    fn retry(error: &str, seconds: Option<u64>) -> Outcome {
        Outcome::Retry { error: error.to_owned(), retry_after: seconds.map(Duration::from_secs) }
    }

    fn defer(reason: &str, seconds: Option<u64>) -> Outcome {
        Outcome::Defer { reason: reason.to_owned(), delay: seconds.map(Duration::from_secs) }
    }

    fn skip(reason: &str) -> Outcome {
        Outcome::Skip { reason: reason.to_owned() }
    }

    fn bury(error: &str) -> Outcome {
        Outcome::DeadLetter { error: error.to_owned() }
    }

    #[test]
    fn a_status_means_what_the_table_says() {
        for (status, headers, expected) in [
            (200, &[][..], Outcome::Complete),
            (204, &[], Outcome::Complete),
            (299, &[], Outcome::Complete),
            (301, &[("location", "http://h/")], retry("HTTP 301 Moved Permanently (redirects are not followed)", None)),
            (304, &[], retry("HTTP 304 Not Modified (redirects are not followed)", None)),
            (400, &[], bury("HTTP 400 Bad Request")),
            (404, &[], retry("HTTP 404 Not Found", None)),
            (410, &[], skip("gone")),
            (500, &[], retry("HTTP 500 Internal Server Error", None)),
            (500, &[("retry-after", "60")], retry("HTTP 500 Internal Server Error", Some(60))),
            (503, &[], retry("HTTP 503 Service Unavailable", None)),
            (503, &[("retry-after", "soon")], retry("HTTP 503 Service Unavailable", None)),
            (503, &[("retry-after", "7")], defer("HTTP 503 Service Unavailable", Some(7))),
            (599, &[], retry("HTTP 599", None)),
            (999, &[], retry("HTTP 999", None)),
        ] {
            assert_eq!(outcome(status, headers), expected, "{status} {headers:?}");
        }
    }

    #[test]
    fn too_many_requests_defers_with_and_without_a_delay() {
        let headers = HeaderMap::new();
        let head = Head { status: StatusCode::TOO_MANY_REQUESTS, headers: &headers };
        assert_eq!(outcome_of(&head, &[], UNIX_EPOCH), defer("HTTP 429 Too Many Requests", None));
        assert_eq!(outcome(429, &[]), bury("HTTP 429 Too Many Requests"), "dead_letter_on goes first");
    }

    #[test]
    fn the_receivers_word_goes_before_every_status() {
        for (status, headers, expected) in [
            (500, &[("outbox-outcome", "complete")][..], Outcome::Complete),
            (400, &[("outbox-outcome", " Complete ")], Outcome::Complete),
            (200, &[("outbox-outcome", "retry")], retry("HTTP 200 OK: the receiver asks for a retry", None)),
            (
                400,
                &[("outbox-outcome", "retry"), ("outbox-reason", "later"), ("retry-after", "9")],
                retry("HTTP 400 Bad Request: later", Some(9)),
            ),
            (200, &[("outbox-outcome", "defer")], defer("HTTP 200 OK: deferred by the receiver", None)),
            (
                200,
                &[("outbox-outcome", "defer"), ("retry-after", "5"), ("outbox-reason", "locked")],
                defer("locked", Some(5)),
            ),
            (200, &[("outbox-outcome", "skip"), ("outbox-reason", "old")], skip("old")),
            (500, &[("outbox-outcome", "skip")], skip("skipped by the receiver")),
            (200, &[("outbox-outcome", "dead_letter")], bury("HTTP 200 OK: given up by the receiver")),
            (202, &[("outbox-outcome", "accepted")], Outcome::Accepted),
            (
                410,
                &[("outbox-outcome", "accepted")],
                retry("HTTP 410 Gone: Outbox-Outcome \"accepted\" needs a 2xx status", None),
            ),
            (200, &[("outbox-outcome", "banana")], retry("HTTP 200 OK: unknown Outbox-Outcome \"banana\"", None)),
            (200, &[("outbox-outcome", "")], retry("HTTP 200 OK: unknown Outbox-Outcome \"\"", None)),
        ] {
            assert_eq!(outcome(status, headers), expected, "{status} {headers:?}");
        }
    }

    #[test]
    fn two_words_are_an_unknown_word() {
        let mut headers = HeaderMap::new();
        headers.append(OUTCOME, HeaderValue::from_static("complete"));
        headers.append(OUTCOME, HeaderValue::from_static("skip"));
        let head = Head { status: StatusCode::OK, headers: &headers };
        let expected = retry("HTTP 200 OK: unknown Outbox-Outcome \"complete, skip\"", None);
        assert_eq!(outcome_of(&head, &[], UNIX_EPOCH), expected);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_by_the_receivers_clock() {
        let in_a_minute = "Tue, 14 Nov 2023 22:14:20 GMT";
        let half_a_minute_fast = ("date", "Tue, 14 Nov 2023 22:13:50 GMT");
        let years_off = ("date", "Thu, 01 Jan 2015 00:00:00 GMT");
        for (headers, expected) in [
            (&[("retry-after", "0")][..], Some(0)),
            (&[("retry-after", " 120 ")], Some(120)),
            (&[("retry-after", "99999999999999999999999")], Some(86_400)),
            (&[("retry-after", in_a_minute)], Some(60)),
            (&[("retry-after", in_a_minute), half_a_minute_fast], Some(30)),
            (&[("retry-after", in_a_minute), years_off], Some(60)),
            (&[("retry-after", in_a_minute), ("date", "yesterday")], Some(60)),
            (&[("retry-after", "Thu, 01 Jan 2015 00:00:00 GMT")], Some(0)),
            (&[("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT")], Some(86_400)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "1.5")], None),
            (&[("retry-after", "")], None),
            (&[("retry-after", "ü")], None),
        ] {
            assert_eq!(outcome(500, headers), retry("HTTP 500 Internal Server Error", expected), "{headers:?}");
        }
    }

    #[test]
    fn foreign_text_becomes_one_bounded_line() {
        let long = "é".repeat(4_000);
        let Outcome::Skip { reason } = outcome(200, &[("outbox-outcome", "skip"), ("outbox-reason", &long)]) else {
            panic!("a skip");
        };
        assert_eq!(reason, "é".repeat(500));
        assert_eq!(clean_text(b" a\tb\0c\xFF ", 500), "a b c\u{FFFD}");
    }
}
