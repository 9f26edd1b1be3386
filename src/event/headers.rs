//! Which header names an event or a route may send along: none that outboxd sets itself, none that steers HTTP.

use std::collections::BTreeMap;

/// Headers that one event may carry.
pub const MAX_HEADERS: usize = 16;
/// Bytes of one header's value.
pub const MAX_HEADER_BYTES: usize = 1024;
const MAX_NAME_BYTES: usize = 128;

const RESERVED: [&str; 17] = [
    "host",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "idempotency-key",
    "forwarded",
    "via",
    "set-cookie",
    "max-forwards",
    "http2-settings",
    "accept-encoding",
    "range",
    "content-type",
];
const RESERVED_PREFIXES: [&str; 6] = ["content-", "proxy-", "webhook-", "outbox-", ":", "sec-"];
/// Credentials belong to the route, which an operator writes; an event's data must not choose them.
const RESERVED_IN_EVENTS: [&str; 2] = ["authorization", "cookie"];

/// A header that is refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", place(.name))]
pub struct HeaderProblem {
    /// The name as it was written, cut to 128 bytes.
    pub name: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Judges the headers of one event.
///
/// # Errors
/// The first header that may not be sent, or that there are more than [`MAX_HEADERS`].
pub fn check_event_headers(headers: &BTreeMap<String, String>) -> Result<(), HeaderProblem> {
    let mut seen: Vec<String> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        check_route_header(name, value)?;
        let lower = name.to_ascii_lowercase();
        if RESERVED_IN_EVENTS.contains(&lower.as_str()) {
            return Err(problem(name, "credentials are set on the route, not by an event"));
        }
        if seen.contains(&lower) {
            return Err(problem(name, "is given twice (names are case-insensitive)"));
        }
        seen.push(lower);
        if seen.len() > MAX_HEADERS {
            return Err(problem(name, "is one too many: an event may have 16 headers"));
        }
    }
    Ok(())
}

/// Judges one header that a route adds to each of its deliveries.
///
/// # Errors
/// A name that is no HTTP token or is reserved, or a value that is too long or not visible ASCII.
pub fn check_route_header(name: &str, value: &str) -> Result<(), HeaderProblem> {
    let lower = name.to_ascii_lowercase();
    if name.is_empty() {
        // The stores read a value of another kind as a header without a name, for that is refused everywhere.
        return Err(problem(name, "has no name, or a value that is no string"));
    }
    if name.len() > MAX_NAME_BYTES || !lower.bytes().all(is_token_byte) {
        return Err(problem(name, "is no HTTP header name"));
    }
    if RESERVED.contains(&lower.as_str()) || RESERVED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) {
        return Err(problem(name, "is set by outboxd or steers HTTP"));
    }
    if value.len() > MAX_HEADER_BYTES {
        return Err(problem(name, "has a value of more than 1024 bytes"));
    }
    if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
        return Err(problem(name, "has a value with characters other than visible ASCII, space and tab"));
    }
    Ok(())
}

fn problem(name: &str, reason: &'static str) -> HeaderProblem {
    HeaderProblem { name: name.chars().take(MAX_NAME_BYTES).collect(), reason }
}

/// How a problem's sentence begins.
fn place(name: &str) -> String {
    if name.is_empty() { "a header ".to_owned() } else { format!("header {name:?}: ") }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn trace_context_and_own_names_pass() {
        for name in ["traceparent", "tracestate", "x-tenant", "X-Correlation-ID"] {
            assert_eq!(check_event_headers(&one(name, "a b")), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_steer_http_or_are_ours_are_refused() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "connection",
            "TE",
            "upgrade",
            "proxy-authorization",
            "Authorization",
            "webhook-id",
            "Outbox-Claim",
            "Idempotency-Key",
            "",
            "a b",
            "a\nb",
            ":path",
        ] {
            assert!(check_event_headers(&one(name, "v")).is_err(), "{name}");
        }
        assert_eq!(check_route_header("authorization", "Bearer x"), Ok(()));
    }

    #[test]
    fn a_header_without_a_name_says_what_it_may_have_been_in_the_row() {
        let text = check_event_headers(&one("", "")).unwrap_err().to_string();
        assert_eq!(text, "a header has no name, or a value that is no string");
        assert_eq!(
            check_event_headers(&one("a b", "v")).unwrap_err().to_string(),
            "header \"a b\": is no HTTP header name"
        );
    }

    #[test]
    fn values_cannot_break_out_of_their_line() {
        for value in ["a\r\nb: c", "a\0", "ü", &"x".repeat(1025)] {
            assert!(check_event_headers(&one("x-a", value)).is_err(), "{value:?}");
        }
    }

    #[test]
    fn sixteen_headers_are_enough() {
        let many = |n: usize| (0..n).map(|i| (format!("x-{i}"), String::new())).collect();
        assert!(check_event_headers(&many(16)).is_ok());
        assert!(check_event_headers(&many(17)).is_err());
    }
}
