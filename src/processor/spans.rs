//! The spans of what the processor does: `send` for an attempt, `process` for a run, `settle` for a statement that settles.
//!
//! Without a tracer nothing here costs more than asking whether there is one. An attempt is the root of a trace of its own,
//! linked to the one in which its event was enqueued: a run delivers events of many traces, hours later perhaps.

use std::sync::Arc;
use std::time::Instant;

use super::attempt::Finished;
use super::{Shared, run::Ended};
use crate::event::TraceContext;
use crate::handler::webhook::failure_class;
use crate::lease::{ClaimedEvent, Lease};
use crate::otlp::Tracer;
use crate::outcome::{MAX_ERROR_CHARS, Outcome, stored_text};
use crate::run::{StopReason, Trigger};
use crate::span::{Operation, Span, SpanContext};
use crate::store::StoreError;

/// What a span of a run over several outboxes names instead of one of them.
pub(super) const ALL: &str = "all";

/// The span of an attempt that is about to begin: none without a tracer, and none when the trace in which the event was
/// enqueued is not sampled.
pub(super) fn of_attempt(shared: &Shared, event: &ClaimedEvent) -> Option<SpanContext> {
    shared.settings.tracer.as_ref()?;
    let link = TraceContext::of(&event.headers).and_then(|context| context.link());
    link.is_none_or(|link| link.context.is_sampled()).then(SpanContext::root)
}

/// Tells of an attempt that has ended.
pub(super) fn attempt_ended(shared: &Shared, finished: &Finished) {
    let (Some(tracer), Some(context)) = (&shared.settings.tracer, finished.delivery.span()) else { return };
    let event = &finished.delivery.event;
    let status = finished.delivery.answer().map(|answer| answer.status_code);
    let mut span = Span::new(context, Operation::Send, &shared.outbox, finished.took);
    span.link = TraceContext::of(&event.headers).and_then(|context| context.link());
    span.say("messaging.message.id", event.lease.event_id.to_string());
    span.say("outboxd.event.type", event.event_type.as_str());
    span.say("outboxd.attempt", i64::from(event.attempt_number()));
    span.say("outboxd.route", finished.route.name.as_str());
    span.say("outboxd.outcome", finished.outcome.as_str());
    if let Some(status) = status {
        span.say("http.response.status_code", i64::from(status));
    }
    if let Some((error_type, error)) = failure(&finished.outcome, status) {
        span.fail(error_type, stored_text(error, MAX_ERROR_CHARS));
    }
    tracer.record(span);
}

/// What failed, as a word that can be searched for, and the text. Neither to put an event off nor to skip it is a failure.
fn failure(outcome: &Outcome, status: Option<u16>) -> Option<(String, &str)> {
    match outcome {
        Outcome::TimedOut { error } => Some(("timeout".to_owned(), error)),
        Outcome::Retry { error, .. } | Outcome::DeadLetter { error } => {
            let refused = status.filter(|status| *status >= 300).map(|status| status.to_string());
            let word = || failure_class(error).unwrap_or(outcome.as_str()).to_owned();
            Some((refused.unwrap_or_else(word), error))
        }
        Outcome::Complete | Outcome::Accepted | Outcome::Settled | Outcome::Defer { .. } | Outcome::Skip { .. } => None,
    }
}

/// The span of a run, over one outbox or several.
#[derive(Clone)]
pub(super) struct RunSpan {
    tracer: Tracer,
    context: SpanContext,
    outbox: Arc<str>,
}

impl RunSpan {
    /// Begins it, where there is a tracer.
    pub(super) fn begin(shared: &Shared, outbox: &Arc<str>) -> Option<Self> {
        let tracer = shared.settings.tracer.clone()?;
        Some(Self { tracer, context: SpanContext::root(), outbox: Arc::clone(outbox) })
    }

    /// What the run's settlements are parts of.
    pub(super) fn context(&self) -> SpanContext {
        self.context
    }

    /// Tells of the run. The poller's idle ones are left out, as in the log.
    pub(super) fn ended(self, ended: &Ended) {
        let report = &ended.report;
        if report.is_idle() && ended.failure.is_none() && ended.trigger == Trigger::Poller {
            return;
        }
        let mut span = Span::new(self.context, Operation::Process, &self.outbox, ended.countdown.elapsed());
        span.say("messaging.batch.message_count", i64::try_from(report.claimed).unwrap_or(i64::MAX));
        span.say("outboxd.run.id", report.run_id.to_string());
        span.say("outboxd.run.trigger", ended.trigger.as_str());
        span.say("outboxd.run.stop_reason", report.stop_reason.map_or("", StopReason::as_str));
        if let Some(error) = &ended.failure {
            span.fail(error_type(error), error.to_string());
        }
        self.tracer.record(span);
    }
}

/// A statement that settles, while it runs.
pub(super) struct SettleSpan<'a> {
    shared: &'a Shared,
    tracer: &'a Tracer,
    parent: Option<SpanContext>,
    begun: Instant,
}

impl<'a> SettleSpan<'a> {
    /// Begins it, where there is a tracer.
    pub(super) fn begin(shared: &'a Shared, parent: Option<SpanContext>) -> Option<Self> {
        let tracer = shared.settings.tracer.as_ref()?;
        Some(Self { shared, tracer, parent, begun: Instant::now() })
    }

    /// Tells of the statement; it has no result when nobody waited for it any longer.
    pub(super) fn ended(self, count: usize, result: Option<&Result<Vec<Lease>, StoreError>>) {
        let context = self.parent.map_or_else(SpanContext::root, SpanContext::child);
        let mut span = Span::new(context, Operation::Settle, &self.shared.outbox, self.begun.elapsed());
        span.parent = self.parent;
        span.say("messaging.batch.message_count", i64::try_from(count).unwrap_or(i64::MAX));
        match result {
            Some(Ok(_)) => {}
            Some(Err(error)) => span.fail(error_type(error), error.to_string()),
            None => span.fail("timeout", "the database did not answer in time"),
        }
        self.tracer.record(span);
    }
}

fn error_type(error: &StoreError) -> &'static str {
    if matches!(error, StoreError::Locked { .. }) {
        "locked"
    } else if error.is_transient() {
        "unavailable"
    } else {
        "refused"
    }
}
