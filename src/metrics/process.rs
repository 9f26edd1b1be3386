//! What happens in this process, one function each.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use super::list::{
    ATTEMPT_DURATION, AUTH_FAILURES, BUILD_INFO, HTTP_DURATION, HTTP_REQUESTS, INFLIGHT, LEASES_LOST, LEASES_REAPED,
    PURGED, QUEUE_WAIT, RUN_DURATION, RUNS,
};
use super::types::{self, counters};
use super::{AuthFailure, GivenUp, sample};
use crate::run::{StopReason, Trigger};

const TRIGGERS: [Trigger; 3] = [Trigger::Http, Trigger::Cli, Trigger::Poller];
const STOP_REASONS: [StopReason; 5] =
    [StopReason::Drained, StopReason::BatchSize, StopReason::Budget, StopReason::Shutdown, StopReason::Error];

/// Makes what has no label of the data's own exist from the start, at 0, so that a first increase is seen as one.
pub fn register<'a>(outboxes: impl IntoIterator<Item = &'a str>) {
    gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    let _ = (gauge!(INFLIGHT), counter!(LEASES_REAPED), counter!(LEASES_LOST));
    let _ = (histogram!(ATTEMPT_DURATION), histogram!(QUEUE_WAIT), histogram!(RUN_DURATION));
    for trigger in TRIGGERS {
        for reason in STOP_REASONS {
            let _ = counter!(RUNS, "trigger" => trigger.as_str(), "stop_reason" => reason.as_str());
        }
    }
    for failure in AuthFailure::ALL {
        let _ = counter!(AUTH_FAILURES, "reason" => failure.as_str());
    }
    for outbox in outboxes {
        let _ = counter!(PURGED, "outbox" => outbox.to_owned());
        sample::register(outbox);
    }
    types::renew();
}

/// A handler that runs; counts as long as it is kept.
pub struct Running(());

/// A handler has begun.
#[must_use]
pub fn running() -> Running {
    gauge!(INFLIGHT).increment(1.0);
    Running(())
}

impl Drop for Running {
    fn drop(&mut self) {
        gauge!(INFLIGHT).decrement(1.0);
    }
}

/// An attempt has ended: what its handler said, how long it took, and how long the event had been due when it was claimed.
pub fn attempt_ended(event_type: &str, outcome: &str, took: Duration, waited: Duration) {
    counters(event_type).attempt(outcome);
    histogram!(ATTEMPT_DURATION).record(took);
    histogram!(QUEUE_WAIT).record(waited);
}

/// An event has become a dead letter.
pub fn dead_letter(event_type: &str, reason: GivenUp) {
    counters(event_type).dead_letter(reason);
}

/// A run has ended.
pub fn run_ended(trigger: Trigger, reason: StopReason, took: Duration) {
    counter!(RUNS, "trigger" => trigger.as_str(), "stop_reason" => reason.as_str()).increment(1);
    histogram!(RUN_DURATION).record(took);
}

/// An expired lease was taken back.
pub fn lease_reaped() {
    counter!(LEASES_REAPED).increment(1);
}

/// A settlement came too late.
pub fn lease_lost() {
    counter!(LEASES_LOST).increment(1);
}

/// Finished events were deleted.
pub fn purged(outbox: &str, count: u64) {
    counter!(PURGED, "outbox" => outbox.to_owned()).increment(count);
}

/// A request was not let in.
pub fn auth_failed(why: AuthFailure) {
    counter!(AUTH_FAILURES, "reason" => why.as_str()).increment(1);
}

/// A request was answered. `route` is the pattern of its path, `method` one of a few.
pub fn http_request(route: &str, method: &'static str, status: u16, took: Duration) {
    counter!(HTTP_REQUESTS, "route" => route.to_owned(), "method" => method, "status" => status.to_string())
        .increment(1);
    histogram!(HTTP_DURATION, "route" => route.to_owned()).record(took);
}
