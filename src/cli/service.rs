//! The resident service: started in order, stopped in order. `serve` and `dev` differ only in what they hand over.
//!
//! Start: database and schema, then the address, then everything that works. Stop: readiness turns red and no new work
//! begins; running handlers finish or are cut off after the grace time; then server, timers and database are closed.
//! Once started, a database that goes away does not end the service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::database::{self, Schema};
use super::export;
use super::outboxes;
use super::receiver::Receiver;
use super::signals::{self, Signals};
use crate::config::ServiceSettings;
use crate::otlp::Exporter;
use crate::processor::Outboxes;
use crate::sampler::{self, Sampler};
use crate::store::Store;
use crate::{api, housekeeping, poller};

/// How long the parts may take to end when the handlers have.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// What `dev` has beside the service itself.
#[derive(Default)]
pub(super) struct Extras {
    /// The built-in receiver.
    pub(super) receiver: Option<Receiver>,
    /// Called once, with the address, when the service is ready.
    pub(super) announce: Option<Box<dyn FnOnce(SocketAddr) -> anyhow::Result<()> + Send>>,
}

/// Runs the service until a signal ends it.
pub(super) async fn run(settings: ServiceSettings, schema: Schema, extras: Extras) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let grace = settings.shutdown_grace;
    let service = tokio::select! {
        service = Service::start(settings, schema, extras) => service?,
        signal = signals.next() => {
            tracing::info!(signal, "stopped before the service was ready");
            return Ok(());
        }
    };
    service.until_stopped(&mut signals, grace).await
}

/// Everything that is running, with the owner of every task.
struct Service {
    stores: Vec<Arc<dyn Store>>,
    outboxes: Outboxes,
    stop: CancellationToken,
    tasks: JoinSet<anyhow::Result<()>>,
    exporter: Option<Exporter>,
}

impl Service {
    async fn start(mut settings: ServiceSettings, schema: Schema, extras: Extras) -> anyhow::Result<Self> {
        let store = database::open(&settings.store, schema).await?;
        let adopted = outboxes::adopted(&settings.store, settings.adopted, &store).await?;
        outboxes::say_limitations(&adopted).await;
        // The default store goes last, for the others stand on it.
        let stores = adopted.iter().map(|outbox| &outbox.store).chain([&store]).cloned().collect();
        let default = settings.default_outbox.then(|| (Arc::clone(&store), settings.registry));
        let (tracer, exporter) = export::begin(settings.otlp);
        settings.processor.tracer = tracer;
        let outboxes = outboxes::together(default, adopted, &settings.processor)?;
        let listener = bind(settings.listen).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let sampler = Sampler::new(outboxes.clone());
        let router = api::router_with(settings.api, sampler.clone());
        let server = api::serve(listener, router, stop.clone());
        tasks.spawn(async { server.await.context("the HTTP server failed") });
        if let Some(receiver) = extras.receiver {
            let receiver = receiver.serve(stop.clone());
            tasks.spawn(async { receiver.await.context("the built-in receiver failed") });
        }
        let cleaning = housekeeping::run(outboxes.clone(), stop.clone());
        tasks.spawn(async {
            cleaning.await;
            Ok(())
        });
        let sampling = sampler::run(sampler, stop.clone());
        tasks.spawn(async {
            sampling.await;
            Ok(())
        });
        if let Some(interval) = settings.poll_interval {
            let polling = poller::run(outboxes.clone(), interval, stop.clone());
            tasks.spawn(async {
                polling.await;
                Ok(())
            });
        }
        tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "ready");
        extras.announce.map_or(Ok(()), |announce| announce(address))?;
        Ok(Self { stores, outboxes, stop, tasks, exporter })
    }

    /// Waits for a signal, or for a part that should not end, and stops everything.
    async fn until_stopped(mut self, signals: &mut Signals, grace: Duration) -> anyhow::Result<()> {
        let result = tokio::select! {
            signal = signals.next() => {
                tracing::info!(signal, grace = ?grace, "stopping: no new work, running handlers finish");
                Ok(())
            }
            ended = self.tasks.join_next() => Err(early_end(ended)),
        };
        tokio::select! {
            () = self.stop(grace) => {}
            signal = signals.next() => signals::exit_now(signal),
        }
        tracing::info!("stopped");
        result
    }

    async fn stop(&mut self, grace: Duration) {
        let begun = Instant::now();
        self.outboxes.begin_shutdown();
        self.outboxes.shut_down(grace).await;
        self.stop.cancel();
        let last_answers = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_ANSWERS, last_answers).await.is_err() {
            tracing::warn!("some connections did not end in time and are cut off");
            self.tasks.shutdown().await;
        }
        export::flush(self.exporter.take(), grace.saturating_sub(begun.elapsed())).await;
        for store in &self.stores {
            store.close().await;
        }
    }
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("server.listen: cannot listen on {address}; choose another address with --listen, such as 127.0.0.1:0 for any free port")
    })
}

/// Why a part ended that should have gone on.
fn early_end(ended: Option<Result<anyhow::Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(Err(error))) => error,
        Some(Err(error)) => anyhow!("a part of the service panicked: {error}"),
        Some(Ok(Ok(()))) | None => anyhow!("a part of the service ended by itself"),
    }
}
