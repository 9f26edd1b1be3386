//! Which numbers the settings may be. One place, for the judgement of a number and for the refusal of what is none.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::event::MAX_ATTEMPTS_LIMIT;

const MEBIBYTE: usize = 1024 * 1024;

/// `server.max_payload_bytes`
pub(super) const MAX_PAYLOAD_BYTES: RangeInclusive<usize> = 1..=64 * MEBIBYTE;
/// `server.max_body_bytes`
pub(super) const MAX_BODY_BYTES: RangeInclusive<usize> = 1..=256 * MEBIBYTE;
/// `run.concurrency`
pub(super) const CONCURRENCY: RangeInclusive<usize> = 1..=10_000;
/// `database.max_connections`
pub(super) const MAX_CONNECTIONS: RangeInclusive<u32> = 2..=1000;
/// `max_attempts` of an outbox.
pub(super) const MAX_ATTEMPTS: RangeInclusive<i32> = 1..=MAX_ATTEMPTS_LIMIT;
/// A route's `dead_letter_on`: a 2xx says that the event is done, and nothing below it ends an answer.
pub(super) const DEAD_LETTER_ON: RangeInclusive<u16> = 300..=599;
/// `factor` of a retry.
pub(super) const FACTOR: RangeInclusive<f64> = 1.0..=100.0;
/// `jitter` of a retry.
pub(super) const JITTER: RangeInclusive<f64> = 0.0..=1.0;

/// What the setting with this name may be, when it is a number.
pub(super) fn valid_numbers(name: &str) -> Option<String> {
    match name {
        "max_payload_bytes" => Some(whole(&MAX_PAYLOAD_BYTES)),
        "max_body_bytes" => Some(whole(&MAX_BODY_BYTES)),
        "concurrency" => Some(whole(&CONCURRENCY)),
        "max_connections" => Some(whole(&MAX_CONNECTIONS)),
        "max_attempts" => Some(whole(&MAX_ATTEMPTS)),
        "dead_letter_on" => Some(whole(&DEAD_LETTER_ON)),
        "factor" => Some(format!("a number, {}", in_words(&FACTOR))),
        "jitter" => Some(format!("a number, {}", in_words(&JITTER))),
        _ => None,
    }
}

fn whole<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("a whole number, {}", in_words(range))
}

/// `1 to 100`
pub(super) fn in_words<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("{} to {}", range.start(), range.end())
}
