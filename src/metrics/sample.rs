//! What was counted in the database, and what can only be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use metrics::gauge;

use super::list::{
    CONNECTIONS, EVENTS, LAST_SUCCESSFUL_RUN, MAX_CONNECTIONS, OLDEST_DUE_AGE, STATS_LAST_SUCCESS, UNROUTED_DUE,
};
use super::types::type_label;

/// What stands in one lane.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Lane<'a> {
    /// Its type.
    pub event_type: &'a str,
    /// Pending events whose time has come.
    pub due: u64,
    /// Pending events whose time has not come.
    pub scheduled: u64,
    /// Events in somebody's hands.
    pub processing: u64,
    /// Dead letters.
    pub dead_letter: u64,
    /// How long the oldest due event has been waiting; 0 when none is due.
    pub oldest_due_seconds: f64,
    /// Whether a route takes them.
    pub routed: bool,
}

/// What of several lanes goes into one label.
#[derive(Default)]
struct Sum {
    states: [u64; 4],
    oldest_due_seconds: f64,
}

const STATES: [&str; 4] = ["due", "scheduled", "processing", "dead_letter"];

/// Labels that have been set, so that a lane that has gone is set to 0 and not left as it was.
static SHOWN: LazyLock<Mutex<BTreeMap<String, BTreeSet<Arc<str>>>>> = LazyLock::new(Mutex::default);

pub(super) fn register(outbox: &str) {
    gauge!(UNROUTED_DUE, "outbox" => outbox.to_owned()).set(0.0);
    gauge!(LAST_SUCCESSFUL_RUN).set(0.0);
    gauge!(STATS_LAST_SUCCESS).set(0.0);
}

/// A lane that is sure to come, for a route names its type: it exists from the start, at 0.
pub fn expect_lane(outbox: &str, event_type: &str) {
    let label = type_label(event_type);
    show(outbox, &label, &Sum::default());
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner).entry(outbox.to_owned()).or_default().insert(label);
}

/// What stands in the lanes of an outbox, all of them.
#[allow(clippy::cast_precision_loss, reason = "counts stop far below 2^53")]
pub fn lanes<'a>(outbox: &str, lanes: impl IntoIterator<Item = Lane<'a>>) {
    let mut sums: BTreeMap<Arc<str>, Sum> = BTreeMap::new();
    let mut unrouted = 0;
    for lane in lanes {
        let sum = sums.entry(type_label(lane.event_type)).or_default();
        for (state, count) in sum.states.iter_mut().zip([lane.due, lane.scheduled, lane.processing, lane.dead_letter]) {
            *state += count;
        }
        sum.oldest_due_seconds = sum.oldest_due_seconds.max(lane.oldest_due_seconds);
        unrouted += if lane.routed { 0 } else { lane.due };
    }
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = shown.entry(outbox.to_owned()).or_default();
    shown.extend(sums.keys().cloned());
    let nothing = Sum::default();
    for label in shown.iter() {
        show(outbox, label, sums.get(label).unwrap_or(&nothing));
    }
    gauge!(UNROUTED_DUE, "outbox" => outbox.to_owned()).set(unrouted as f64);
}

#[allow(clippy::cast_precision_loss, reason = "counts stop far below 2^53")]
fn show(outbox: &str, label: &Arc<str>, sum: &Sum) {
    for (state, count) in STATES.into_iter().zip(sum.states) {
        let (outbox, label) = (outbox.to_owned(), label.to_string());
        gauge!(EVENTS, "outbox" => outbox, "type" => label, "state" => state).set(count as f64);
    }
    let (outbox, label) = (outbox.to_owned(), label.to_string());
    gauge!(OLDEST_DUE_AGE, "outbox" => outbox, "type" => label).set(sum.oldest_due_seconds);
}

/// When the outbox whose counts are oldest was counted, in seconds since 1970 by the database's clock.
pub fn stats_succeeded(seconds: f64) {
    gauge!(STATS_LAST_SUCCESS).set(seconds);
}

/// When a run last ended without an error, in the same way.
pub fn last_successful_run(seconds: f64) {
    gauge!(LAST_SUCCESSFUL_RUN).set(seconds);
}

/// How an outbox's connections are used.
pub fn connections(outbox: &str, in_use: u32, idle: u32, max: u32) {
    for (state, count) in [("in_use", in_use), ("idle", idle)] {
        gauge!(CONNECTIONS, "outbox" => outbox.to_owned(), "state" => state).set(f64::from(count));
    }
    gauge!(MAX_CONNECTIONS, "outbox" => outbox.to_owned()).set(f64::from(max));
}
