//! What to say when there is no answer: a class that operators can search for, and the cause in a few words.
//!
//! Classes: `dns`, `connect`, `tls`, `reset`, `timeout`, `body`, `request`. Only the innermost cause is told, which
//! knows neither URL nor headers.

use std::error::Error;
use std::io;

use super::answer::clean_text;

const CLASSES: [&str; 7] = ["dns", "connect", "tls", "reset", "timeout", "body", "request"];

const MAX_CAUSE_CHARS: usize = 200;

/// Describes a request that got no answer.
pub(super) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    format!("{}: {}", class(&error), deepest_text(&error))
}

/// Describes an answer that broke off in its body.
pub(super) fn describe_body(error: reqwest::Error) -> String {
    format!("body: the answer broke off: {}", deepest_text(&error.without_url()))
}

/// The class that an error of an attempt begins with, if it is one of a webhook.
#[must_use]
pub fn failure_class(error: &str) -> Option<&'static str> {
    let (word, _) = error.split_once(": ")?;
    CLASSES.into_iter().find(|class| *class == word)
}

/// The innermost cause, short enough for a log line.
pub(super) fn deepest_text(error: &(dyn Error + 'static)) -> String {
    let cause = chain(error).last().map_or_else(|| error.to_string(), ToString::to_string);
    clean_text(cause.as_bytes(), MAX_CAUSE_CHARS)
}

fn class(error: &reqwest::Error) -> &'static str {
    let io_kind = || chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last().map(io::Error::kind);
    if error.is_builder() {
        "request"
    } else if error.is_dns() || chain(error).any(|cause| cause.to_string() == "dns error") {
        "dns"
    } else if chain(error).any(<dyn Error>::is::<rustls::Error>) {
        "tls"
    } else if error.is_timeout() {
        "timeout"
    } else if io_kind().is_some_and(closes) || chain(error).any(|cause| cause.downcast_ref().is_some_and(cut_off)) {
        "reset"
    } else if error.is_connect() {
        "connect"
    } else {
        "request"
    }
}

fn closes(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
}

fn cut_off(error: &hyper::Error) -> bool {
    error.is_incomplete_message() || error.is_closed() || error.is_canceled()
}

/// An error and all its causes. An `io::Error` hides the error that it wraps from `source`, so that is looked up too.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}
