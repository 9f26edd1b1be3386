//! One attempt: a claimed event is handed to its handler, and whatever happens becomes one outcome.
//!
//! A handler that panics, that takes too long or that is cut off by a shutdown has spent one attempt of one event;
//! nothing else notices.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::tally::Tally;
use crate::event::check_event_headers;
use crate::handler::{Delivery, Route};
use crate::json::{self, JsonProblem};
use crate::lease::ClaimedEvent;
use crate::metrics;
use crate::outcome::{AttemptLine, Decision, MAX_ERROR_CHARS, Outcome, Settlement, decide, stored_text};

/// Characters of an answer that the attempt log keeps.
const MAX_RESPONSE_CHARS: usize = 4_096;

/// An attempt that has ended.
pub(super) struct Finished {
    pub(super) delivery: Arc<Delivery>,
    pub(super) route: Arc<Route>,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
}

/// Makes one attempt. The slot is given back when it ends.
pub(super) async fn attempt(
    delivery: Arc<Delivery>,
    route: Arc<Route>,
    max_payload_bytes: usize,
    slot: OwnedSemaphorePermit,
    cut_off: CancellationToken,
) -> Finished {
    let running = metrics::running();
    let outcome = match refusal(&delivery.event, max_payload_bytes) {
        Some(error) => Outcome::DeadLetter { error },
        None => handle(&delivery, &route, &cut_off).await,
    };
    drop(running);
    drop(slot);
    let took = delivery.elapsed();
    Finished { delivery, route, outcome, took }
}

async fn handle(delivery: &Delivery, route: &Route, cut_off: &CancellationToken) -> Outcome {
    let mut handled = pin!(AssertUnwindSafe(route.handler.handle(delivery)).catch_unwind());
    // What ends at once needs no timer.
    if let Poll::Ready(outcome) = poll_fn(|context| Poll::Ready(handled.as_mut().poll(context))).await {
        return outcome.unwrap_or_else(|panic| Outcome::retry(panic_text(panic.as_ref())));
    }
    tokio::select! {
        biased;
        outcome = handled => outcome.unwrap_or_else(|panic| Outcome::retry(panic_text(panic.as_ref()))),
        () = cut_off.cancelled() => Outcome::TimedOut { error: "cut off by a shutdown".to_owned() },
        () = tokio::time::sleep(delivery.remaining()) => timed_out(route),
    }
}

/// The outcome of an attempt that took longer than its route allows.
pub(super) fn timed_out(route: &Route) -> Outcome {
    Outcome::TimedOut { error: format!("no complete answer within {} ms", route.timeout.as_millis()) }
}

/// What only the service can judge of an event that a plain INSERT brought in; such an event fails alone.
fn refusal(event: &ClaimedEvent, max_payload_bytes: usize) -> Option<String> {
    let Some(payload) = &event.payload else {
        let bytes = event.payload_bytes;
        if usize::try_from(bytes).is_ok_and(|bytes| bytes <= max_payload_bytes) {
            return Some("the payload cannot be read: it is missing, not UTF-8 text or no JSON".to_owned());
        }
        return Some(format!("the payload has {bytes} bytes; at most {max_payload_bytes} are delivered"));
    };
    if json::check(payload) == Err(JsonProblem::TooDeep) {
        return Some(format!("the payload {}", JsonProblem::TooDeep));
    }
    check_event_headers(&event.headers).err().map(|problem| problem.to_string())
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("without a message"))
}

impl Finished {
    /// Decides what is to be written; `None` when nothing is.
    pub(super) fn settlement(&self, log_all: bool) -> Option<Settlement> {
        let event = &self.delivery.event;
        match decide(&self.outcome, event, &self.route.policy, fastrand::f64()) {
            Decision::Settle(change) => {
                let keeps_line = log_all || self.outcome != Outcome::Complete;
                let attempt = keeps_line.then(|| self.line());
                Some(Settlement { lease: event.lease.clone(), change, attempt })
            }
            Decision::KeepLease | Decision::AlreadySettled => None,
        }
    }

    fn line(&self) -> AttemptLine {
        let answer = self.delivery.answer();
        let response = answer.as_ref().map(|answer| stored_text(&answer.excerpt, MAX_RESPONSE_CHARS));
        AttemptLine {
            number: self.delivery.event.attempt_number(),
            duration: self.took,
            outcome: self.outcome.as_str(),
            status_code: answer.map(|answer| answer.status_code),
            error: self.outcome.error().map(|error| stored_text(error, MAX_ERROR_CHARS)),
            response: response.filter(|response| !response.is_empty()),
        }
    }

    /// Counts the attempt, and says what is going to become of the event.
    pub(super) fn count(&self, tally: &Tally, settlement: Option<&Settlement>) {
        let event = &self.delivery.event;
        metrics::attempt_ended(&event.event_type, self.outcome.as_str(), self.took, event.waited);
        match settlement {
            Some(settlement) => tally.note_intent(event, &self.outcome, &settlement.change),
            None if self.outcome == Outcome::Settled => tally.note_completed(),
            None => {}
        }
    }

    /// One line for each attempt that did not complete its event.
    pub(super) fn log(&self, outbox: &str) {
        let Some(error) = self.outcome.error() else { return };
        let event = &self.delivery.event;
        tracing::warn!(
            outbox,
            event_id = %event.lease.event_id,
            event_type = %event.event_type,
            route = %self.route.name,
            attempt = event.attempt_number(),
            max_attempts = event.max_attempts,
            outcome = self.outcome.as_str(),
            duration_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            error = %stored_text(error, MAX_ERROR_CHARS),
            "an attempt did not complete its event"
        );
    }
}
