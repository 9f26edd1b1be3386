//! `outboxd process`

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use uuid::Uuid;

use super::database::{self, Schema};
use super::export;
use super::global::Global;
use super::outboxes;
use super::output;
use super::signals::{self, Signals};
use crate::budget::Budget;
use crate::config::Config;
use crate::event::{EventId, check_event_type};
use crate::processor::{Outboxes, ProcessorSettings, RunError, RunRequest};
use crate::run::{RunReport, Trigger};

/// One run without HTTP: claim what is due, deliver, report as JSON
///
/// Exits with 0 when the run was done, whatever became of the events, and with 1 when it could not be done. SIGTERM stops
/// further claims; what has begun is finished and reported.
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd process --config outboxd.toml --batch-size 500 --max-runtime-ms 55000")]
pub(super) struct Arguments {
    /// Events to claim at most
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<u32>::new().range(1..=u64::from(Budget::MAX_BATCH_SIZE)))]
    batch_size: u32,
    /// When the run must have ended
    #[arg(long, default_value_t = 50_000)]
    max_runtime_ms: u64,
    /// Time that must be left for another claim
    #[arg(long, default_value_t = 0)]
    min_remaining_ms: u64,
    /// Only events of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    types: Vec<String>,
    /// Only events of this subject
    #[arg(long)]
    subject: Option<String>,
    /// Only events of this outbox; all outboxes share the run when it is not given
    #[arg(long, value_name = "NAME")]
    outbox: Option<String>,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let (registry, adopted) = config.outboxes()?;
    let outbox = arguments.outbox.clone();
    if outbox.is_some() {
        config.described(outbox.as_deref())?;
    }
    let request = request(arguments, &config)?;
    let store = database::open_configured(&config, Schema::Require).await?;
    let adopted = outboxes::adopted(&config.store(), adopted, &store).await?;
    let default = config.default_outbox().then(|| (Arc::clone(&store), registry));
    // The default store goes last, for the others stand on it.
    let stores: Vec<_> = adopted.iter().map(|outbox| &outbox.store).chain([&store]).cloned().collect();
    let (tracer, exporter) = export::begin(config.otlp());
    let outboxes = outboxes::together(default, adopted, &ProcessorSettings { tracer, ..config.processor() })?;
    let result = stoppable(&outboxes, request, outbox.as_deref(), config.shutdown_grace()).await?;
    // What the run has left to be written down is written before its database is closed.
    outboxes.shut_down(config.shutdown_grace()).await;
    for store in stores {
        store.close().await;
    }
    let told = tell(result);
    export::flush(exporter, config.shutdown_grace()).await;
    told
}

/// Prints the report, as far as there is one.
fn tell(result: Result<RunReport, RunError>) -> anyhow::Result<()> {
    match result {
        Ok(report) => output::json(&report),
        Err(RunError::Store { source, partial }) => {
            if let Some(partial) = partial {
                output::json(&partial)?;
            }
            Err(output::without_causes(source)).context("the run could not be done to its end")
        }
        Err(
            error @ (RunError::BudgetTooSmall { .. }
            | RunError::UnknownOutbox(_)
            | RunError::ShuttingDown
            | RunError::Panicked { .. }),
        ) => {
            bail!(error)
        }
    }
}

fn request(arguments: Arguments, config: &Config) -> anyhow::Result<RunRequest> {
    let max_runtime = Duration::from_millis(arguments.max_runtime_ms);
    let cap = config.max_runtime_cap();
    ensure!(
        !max_runtime.is_zero() && max_runtime <= cap,
        "--max-runtime-ms: {} is out of range: valid are 1 to {} (run.max_runtime_cap)",
        arguments.max_runtime_ms,
        cap.as_millis()
    );
    let min_remaining = Duration::from_millis(arguments.min_remaining_ms);
    ensure!(
        min_remaining <= max_runtime,
        "--min-remaining-ms: {} is more than --max-runtime-ms ({}): nothing could be claimed",
        arguments.min_remaining_ms,
        arguments.max_runtime_ms
    );
    Ok(RunRequest {
        budget: Budget { batch_size: arguments.batch_size, max_runtime, min_remaining },
        trigger: Trigger::Cli,
        types: arguments.types,
        subject: arguments.subject,
    })
}

/// Runs; the first signal stops further claims and cuts off what still runs after `grace`, the second ends the program.
async fn stoppable(
    outboxes: &Outboxes,
    request: RunRequest,
    outbox: Option<&str>,
    grace: Duration,
) -> anyhow::Result<Result<RunReport, RunError>> {
    let mut signals = Signals::listen()?;
    let run = outboxes.run(request, outbox);
    tokio::pin!(run);
    tokio::select! {
        result = &mut run => return Ok(result),
        signal = signals.next() => {
            tracing::info!(signal, "stopping: running handlers finish");
            outboxes.begin_shutdown();
        }
    }
    tokio::select! {
        (result, ()) = async { tokio::join!(&mut run, outboxes.shut_down(grace)) } => Ok(result),
        signal = signals.next() => signals::exit_now(signal),
    }
}

/// Reads a new event's id on the command line.
pub(super) fn uuid(text: &str) -> Result<Uuid, String> {
    let uuid = EventId::from_text(text).uuid();
    uuid.ok_or_else(|| "must be a UUID, such as 0197a0c2-7b1e-7c3a-9f00-0242ac120002".to_owned())
}

/// Reads an event's id on the command line.
pub(super) fn event_id(text: &str) -> Result<EventId, String> {
    uuid(text).map(EventId::Uuid)
}

/// Judges a type on the command line.
pub(super) fn event_type(text: &str) -> Result<String, String> {
    check_event_type(text).map(|()| text.to_owned())
}
