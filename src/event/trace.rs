//! Where an event comes from in a trace: the W3C trace context of the request that enqueued it.
//!
//! It is kept with the event's headers and so goes on to the receiver. It is no part of what tells a replay from another
//! request: a request that is made again has another span.

use std::collections::BTreeMap;

use super::headers::{MAX_HEADER_BYTES, MAX_HEADERS};
use crate::span::{Link, SpanContext};

/// Names of the two headers.
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// A trace context that can be passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
}

impl TraceContext {
    /// Reads the two headers; `None` when the first is not what the standard says, for then nobody could follow it. A state
    /// that is too long or not visible ASCII is left out.
    #[must_use]
    pub fn read(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let visible =
            |text: &&str| text.len() <= MAX_HEADER_BYTES && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        is_traceparent(traceparent).then(|| Self {
            traceparent: traceparent.to_owned(),
            tracestate: tracestate.map(str::trim).filter(|text| !text.is_empty()).filter(visible).map(str::to_owned),
        })
    }

    /// The context among an event's headers, whatever the case of their names.
    #[must_use]
    pub fn of(headers: &BTreeMap<String, String>) -> Option<Self> {
        let value = |wanted: &str| {
            headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
        };
        Self::read(value(TRACEPARENT)?, value(TRACESTATE))
    }

    /// The span that it names, to be linked to.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        let context = SpanContext::parse(&self.traceparent)?;
        Some(Link { context, tracestate: self.tracestate.clone() })
    }

    /// Puts the context among an event's headers, unless they have one of their own, or no room.
    pub(super) fn add_to(&self, headers: &mut BTreeMap<String, String>) {
        let has_own =
            headers.keys().any(|name| name.eq_ignore_ascii_case(TRACEPARENT) || name.eq_ignore_ascii_case(TRACESTATE));
        if has_own || headers.len() + 1 + usize::from(self.tracestate.is_some()) > MAX_HEADERS {
            return;
        }
        headers.insert(TRACEPARENT.to_owned(), self.traceparent.clone());
        if let Some(tracestate) = &self.tracestate {
            headers.insert(TRACESTATE.to_owned(), tracestate.clone());
        }
    }
}

/// Version, trace, span and flags in lower hexadecimal; neither trace nor span is all zeros. Later versions may say more.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_set = |part: &str| part.bytes().any(|byte| byte != b'0');
    match parts.as_slice() {
        [version, trace, span, flags] => {
            is_hex(version, 2)
                && *version != "ff"
                && is_hex(trace, 32)
                && is_hex(span, 16)
                && is_hex(flags, 2)
                && is_set(trace)
                && is_set(span)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn added(headers: &[(&str, &str)], state: Option<&str>) -> BTreeMap<String, String> {
        let mut headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TraceContext::read(PARENT, state).unwrap().add_to(&mut headers);
        headers
    }

    #[test]
    fn only_what_can_be_followed_is_kept() {
        for text in ["", "00-1-2-01", "nonsense", &PARENT.to_uppercase(), &PARENT.replacen("00", "ff", 1)] {
            assert_eq!(TraceContext::read(text, None), None, "{text}");
        }
        for part in ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"] {
            assert_eq!(TraceContext::read(&PARENT.replace(part, &"0".repeat(part.len())), None), None, "{part}");
        }
        assert_eq!(added(&[], Some(&"x".repeat(MAX_HEADER_BYTES + 1))).len(), 1);
        assert_eq!(added(&[], Some("a=1,b=2"))["tracestate"], "a=1,b=2");
    }

    #[test]
    fn an_events_own_context_wins_and_the_limit_of_headers_stands() {
        assert_eq!(added(&[("TraceParent", "mine")], Some("a=1")).len(), 1);
        let names: Vec<String> = (0..MAX_HEADERS).map(|n| format!("x-{n}")).collect();
        let full: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(added(&full, None).len(), MAX_HEADERS);
    }
}
