//! The receivers' edge: what a handler is, and the registry that says which one takes an event.
//!
//! A handler gets one claimed event, says what came of it, and knows nothing of claims, retries or databases. Nothing is
//! held while it runs: no connection, no transaction, no lock.

mod discard;
mod log;
mod registry;
pub mod webhook;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;

pub use discard::Discard;
pub use log::Log;
pub use registry::{Pattern, Registry, RegistryError, Route};

use crate::lease::{ClaimKey, ClaimedEvent};
use crate::outcome::Outcome;
use crate::span::SpanContext;

/// How long a handler may take when its route does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Delivers events of the types that a [`Route`] gives it.
///
/// Whatever goes wrong is an [`Outcome`]; a panic becomes a retry with the panic's text. The same event may come again
/// (after a crash, a time-out, a lost lease): the event's id is the same each time, and `claim_no` grows.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Makes one attempt. The future is dropped when the route's timeout is over, which settles the attempt as a
    /// time-out. It must not block its thread; put blocking work on `tokio::task::spawn_blocking`.
    async fn handle(&self, delivery: &Delivery) -> Outcome;
}

/// One attempt to deliver one event.
#[derive(Debug)]
pub struct Delivery {
    /// The event, with its lease.
    pub event: ClaimedEvent,
    timeout: Duration,
    started: Instant,
    answer: Mutex<Option<Answer>>,
    claim_key: Option<ClaimKey>,
    span: Option<SpanContext>,
}

/// What a receiver answered, for the attempt log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status_code: u16,
    /// The beginning of the body.
    pub excerpt: String,
}

impl Delivery {
    /// Starts the clock of an attempt.
    #[must_use]
    pub fn start(event: ClaimedEvent, timeout: Duration) -> Self {
        Self { event, timeout, started: Instant::now(), answer: Mutex::new(None), claim_key: None, span: None }
    }

    /// The same, able to show a claim token.
    #[must_use]
    pub fn with_claim_key(self, key: ClaimKey) -> Self {
        Self { claim_key: Some(key), ..self }
    }

    /// The same, as this span of a trace, if it is to be one.
    #[must_use]
    pub fn with_span(self, span: Option<SpanContext>) -> Self {
        Self { span, ..self }
    }

    /// The attempt's own span, from which the receiver goes on. Without one the event's `traceparent` is passed on as it is.
    #[must_use]
    pub fn span(&self) -> Option<SpanContext> {
        self.span
    }

    /// What the receiver may settle or extend this claim with, after it has answered `accepted`.
    #[must_use]
    pub fn claim_token(&self) -> Option<String> {
        self.claim_key.as_ref().map(|key| key.token(&self.event.lease))
    }

    /// The payload's JSON text, byte for byte.
    #[must_use]
    pub fn payload(&self) -> &str {
        self.event.payload.as_deref().unwrap_or_default()
    }

    /// How long the whole attempt may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How much of that time is left.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.timeout.saturating_sub(self.elapsed())
    }

    /// How long the attempt has taken so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Keeps what the receiver answered for the attempt log, also when the attempt is cut off later.
    pub fn note_answer(&self, answer: Answer) {
        if let Ok(mut kept) = self.answer.lock() {
            *kept = Some(answer);
        }
    }

    /// What the receiver answered, if anything.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        self.answer.lock().ok().and_then(|kept| kept.clone())
    }
}
