//! Export of spans to a collector, by OTLP over HTTP.
//!
//! Whoever has a span to tell of puts it into a bounded queue and goes on; one task takes them out, many at a time, and
//! posts them. A collector that is slow, away or unwilling costs spans and one line of the log a minute, and nothing else:
//! nobody waits for room in the queue, and what was not taken is not sent again.

mod endpoint;
mod losses;
mod wire;

use std::error::Error;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use endpoint::{Endpoint, EndpointProblem};

use self::losses::Losses;
use crate::span::Span;

/// Spans that wait to be posted; a few megabytes at most.
const MAX_WAITING: usize = 4_096;
/// Spans that one request carries.
const MAX_BATCH: usize = 512;
/// How long a span waits for company.
const LINGER: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Collectors commonly close a connection that was idle for longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Takes spans. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tracer {
    queue: mpsc::Sender<Ended>,
    dropped: Arc<AtomicU64>,
}

/// A span and when it ended.
#[derive(Debug)]
struct Ended {
    span: Span,
    at: SystemTime,
}

impl Tracer {
    /// Hands over a span that ends now. Never waits: while the queue is full spans are dropped.
    pub fn record(&self, span: Span) {
        if self.queue.try_send(Ended { span, at: wall_clock() }).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Spans cannot be exported from this process.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP client; it needs the system's CA certificates (package ca-certificates or SSL_CERT_FILE)")]
pub struct ExportError(#[from] reqwest::Error);

/// The task that posts spans, and its owner.
#[derive(Debug)]
pub struct Exporter {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Exporter {
    /// Begins to export to a collector what its tracer is given. Nothing is sent before there is a span.
    ///
    /// # Errors
    /// There are no CA certificates to judge collectors by.
    pub fn start(endpoint: Endpoint) -> Result<(Tracer, Self), ExportError> {
        // An error means that a provider is installed, which is all that is needed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("outboxd/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .timeout(PATIENCE)
            .build()?;
        let (sender, queue) = mpsc::channel(MAX_WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let tracer = Tracer { queue: sender, dropped: Arc::clone(&dropped) };
        let stop = CancellationToken::new();
        let instance = Uuid::now_v7().to_string();
        let losses = Losses::default();
        let worker = Worker { client, endpoint, instance, queue, stop: stop.clone(), dropped, losses };
        let mut task = JoinSet::new();
        task.spawn(worker.run());
        Ok((tracer, Self { stop, task }))
    }

    /// Posts what waits, for at most so long, and ends. Spans that come later are dropped.
    pub async fn shut_down(mut self, within: Duration) {
        self.stop.cancel();
        if timeout(within, self.task.join_next()).await.is_err() {
            tracing::warn!("the last spans could not be exported in time");
            self.task.shutdown().await;
        }
    }
}

/// What the task owns.
struct Worker {
    client: Client,
    endpoint: Endpoint,
    instance: String,
    queue: mpsc::Receiver<Ended>,
    stop: CancellationToken,
    dropped: Arc<AtomicU64>,
    losses: Losses,
}

impl Worker {
    async fn run(mut self) {
        let mut spans = Vec::with_capacity(MAX_BATCH);
        loop {
            self.gather(&mut spans).await;
            if spans.is_empty() {
                return;
            }
            let count = spans.len() as u64;
            let posted = self.post(mem::replace(&mut spans, Vec::with_capacity(MAX_BATCH))).await;
            self.take_stock(count, posted);
        }
    }

    /// Waits for a span and a while for more; brings none only at the end.
    async fn gather(&mut self, spans: &mut Vec<Ended>) {
        let stop = self.stop.clone();
        let company = async {
            spans.extend(self.queue.recv().await);
            let more = async {
                while spans.len() < MAX_BATCH
                    && let Some(span) = self.queue.recv().await
                {
                    spans.push(span);
                }
            };
            // Whichever comes first.
            let _ = timeout(LINGER, more).await;
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = company => {}
        }
        while spans.len() < MAX_BATCH
            && let Ok(span) = self.queue.try_recv()
        {
            spans.push(span);
        }
    }

    /// One request; says why it failed, if it did.
    async fn post(&self, spans: Vec<Ended>) -> Result<(), String> {
        let request = self
            .client
            .post(self.endpoint.spans().clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"))
            .body(wire::body(spans, &self.instance));
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(refusal(answer.status())),
            Err(error) => Err(innermost(&error.without_url())),
        }
    }

    /// Counts what was lost and says so, once a minute at most.
    fn take_stock(&mut self, count: u64, posted: Result<(), String>) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let (lost, reason) = match posted {
            Ok(()) => (dropped, "the collector is too slow for them".to_owned()),
            Err(reason) => (dropped + count, reason),
        };
        if let Some(lost) = self.losses.add(lost, Instant::now()) {
            tracing::warn!(lost, reason, "spans could not be exported");
        }
    }
}

fn refusal(status: StatusCode) -> String {
    format!("the collector answered HTTP {}", status.as_u16())
}

/// The cause that knows most, and neither URL nor headers.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The door to the process's own clock: tools put spans of many machines on one line of time.
#[allow(clippy::disallowed_methods, reason = "spans are for tracing tools and decide nothing")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{Operation, SpanContext};

    #[test]
    fn a_span_that_finds_no_room_is_dropped_and_counted() {
        let (queue, _kept) = mpsc::channel(1);
        let tracer = Tracer { queue, dropped: Arc::default() };
        for _ in 0..3 {
            tracer.record(Span::new(SpanContext::root(), Operation::Send, "default", Duration::ZERO));
        }
        assert_eq!(tracer.dropped.load(Ordering::Relaxed), 2);
    }
}
