//! `outboxd dev`

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use uuid::Uuid;

use super::database::Schema;
use super::global::Global;
use super::output;
use super::receiver::Receiver;
use super::service::{self, Extras};
use crate::api::ApiSettings;
use crate::config::{ServiceSettings, mask_url};
use crate::handler::webhook::{Webhook, WebhookClient, WebhookSettings};
use crate::handler::{Pattern, Registry, Route};
use crate::processor::ProcessorSettings;
use crate::retention::Retention;
use crate::store::StoreOptions;
use crate::telemetry::{self, LogFormat, LogSettings};

const DEFAULT_DATABASE: &str = "sqlite://outboxd.db";
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Try everything on this machine: a database file, no tokens, poller on, a receiver that shows what arrives
///
/// Reads neither a settings file nor the environment, so that it never works on a real database by accident.
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd dev --port 9000")]
pub(super) struct Arguments {
    /// Loopback address and port to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Port to listen on, on 127.0.0.1
    #[arg(long, conflicts_with = "listen")]
    port: Option<u16>,
    // Refused below, so not offered: this one stands in for the option of every command.
    #[arg(long, hide = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How much to log beside the deliveries: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: String,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> anyhow::Result<()> {
    if arguments.config.is_some() {
        bail!("--config: `dev` reads no settings file: use `outboxd serve --config …`");
    }
    let listen = arguments.port.map_or(arguments.listen, |port| SocketAddr::from(([127, 0, 0, 1], port)));
    ensure!(
        listen.ip().is_loopback(),
        "--listen: {listen} can be reached by others, and `dev` has no tokens: valid is a loopback address such as \
         127.0.0.1:8080"
    );
    telemetry::init(&LogSettings { format: LogFormat::Text, level: arguments.log_level })?;
    let receiver = Receiver::bind().await?;
    let url = global.database_url.clone().unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
    let place = mask_url(&url);
    let settings = settings(url, listen, &receiver)?;
    let announce = move |address| output::text(&banner(address, &place));
    service::run(settings, Schema::Migrate, Extras { receiver: Some(receiver), announce: Some(Box::new(announce)) })
        .await
}

fn settings(url: String, listen: SocketAddr, receiver: &Receiver) -> anyhow::Result<ServiceSettings> {
    // Whoever tries it out wants to see the attempts that went well too.
    let retention = Some(Retention::default());
    let processor = ProcessorSettings { log_all_attempts: true, retention, ..ProcessorSettings::default() };
    let webhook = WebhookSettings {
        url: receiver.url(),
        headers: BTreeMap::new(),
        secrets: Vec::new(),
        dead_letter_on: Vec::new(),
    };
    let handler = Arc::new(Webhook::new(WebhookClient::new()?, webhook)?);
    Ok(ServiceSettings {
        store: StoreOptions::new(url),
        processor,
        registry: Registry::new(vec![Route::new("built-in-receiver", vec![Pattern::All], handler)])?,
        default_outbox: true,
        adopted: Vec::new(),
        api: ApiSettings::default(),
        listen,
        shutdown_grace: SHUTDOWN_GRACE,
        poll_interval: Some(POLL_INTERVAL),
        otlp: None,
    })
}

/// What to try next, to be copied as it stands.
fn banner(address: SocketAddr, place: &str) -> String {
    let id = Uuid::now_v7();
    format!(
        r#"outboxd is running on http://{address}
  data      {place} (to begin anew: stop, then delete the file; a second `dev` on it shares the events)
  receiver  built in: every event is delivered to this terminal
  stop      Ctrl-C

Try, in another terminal:

  # enqueue an event
  curl -sS http://{address}/v1/events -H 'content-type: application/json' -d '{{"id":"{id}","type":"invoice.created","subject":"invoice/42","payload":{{"amount":4200,"currency":"EUR"}}}}'

  # process what is due (the poller does it every second too)
  curl -sS -X POST http://{address}/v1/process

  # read what became of it
  curl -sS 'http://{address}/v1/events/{id}?include=attempts'
"#
    )
}
