//! The settings as they are written: one struct per table, each field with its default.
//!
//! These structs say what can be written, not what it means: ranges and contradictions are judged in `check`, and
//! what the other modules need is put together in [`Config`](super::Config). Serialising them masks every secret.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::outbox::written::Outbox;
use super::secret::{DatabaseUrl, HeaderValue, RouteUrl, Secret};
use super::text::{duration, duration_or_auto, duration_or_off, durations, optional_duration};
use crate::telemetry::LogFormat;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Which database holds the outbox.
    pub database_url: DatabaseUrl,
    /// Whether the tables that outboxd has made there are an outbox too.
    pub default_outbox: bool,
    /// The HTTP server.
    pub server: Server,
    /// How runs work.
    pub run: Run,
    /// The built-in timer.
    pub poller: Poller,
    /// How much of the database to use.
    pub database: Database,
    /// How long events are kept.
    pub retention: Retention,
    /// The log.
    pub log: Log,
    /// What is told to tracing tools.
    pub telemetry: Telemetry,
    /// Who may call the HTTP API.
    #[serde(rename = "token", skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// Tables that were there before.
    #[serde(rename = "outbox", skip_serializing_if = "Vec::is_empty")]
    pub outboxes: Vec<Outbox>,
    /// Which handler takes which events.
    #[serde(rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            database_url: DatabaseUrl::default(),
            default_outbox: true,
            server: Server::default(),
            run: Run::default(),
            poller: Poller::default(),
            database: Database::default(),
            retention: Retention::default(),
            log: Log::default(),
            telemetry: Telemetry::default(),
            tokens: Vec::new(),
            outboxes: Vec::new(),
            routes: Vec::new(),
        }
    }
}

/// `[server]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Address and port.
    pub listen: String,
    /// Larger request bodies are refused.
    pub max_body_bytes: usize,
    /// Larger payloads are refused.
    pub max_payload_bytes: usize,
    /// Whether `/metrics` asks for no token.
    pub public_metrics: bool,
    /// How long running handlers may go on after SIGTERM.
    #[serde(with = "duration")]
    pub shutdown_grace: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            max_body_bytes: 1024 * 1024,
            max_payload_bytes: 256 * 1024,
            public_metrics: false,
            shutdown_grace: Duration::from_secs(25),
        }
    }
}

/// `[run]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Handlers at once in this instance.
    pub concurrency: usize,
    /// `None` is "auto".
    #[serde(with = "duration_or_auto")]
    pub lease: Option<Duration>,
    /// Which attempts are kept.
    pub attempt_log: AttemptLog,
    /// The longest run that a caller may ask for.
    #[serde(with = "duration")]
    pub max_runtime_cap: Duration,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease: None,
            attempt_log: AttemptLog::Failures,
            max_runtime_cap: Duration::from_mins(14),
        }
    }
}

/// Which attempts the log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptLog {
    /// Those that did not complete their event.
    Failures,
    /// Every one.
    All,
}

/// `[poller]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Poller {
    /// `None` is "off".
    #[serde(with = "duration_or_off")]
    pub interval: Option<Duration>,
}

/// `[database]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// Connections of this instance.
    pub max_connections: u32,
    /// Whether a pooler in transaction mode stands between.
    pub pooler: bool,
}

impl Default for Database {
    fn default() -> Self {
        Self { max_connections: 10, pooler: false }
    }
}

/// `[retention]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Of completed events.
    #[serde(with = "duration")]
    pub completed: Duration,
    /// Of skipped events.
    #[serde(with = "duration")]
    pub skipped: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { completed: Duration::from_hours(7 * 24), skipped: Duration::from_hours(30 * 24) }
    }
}

/// `[log]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Text for eyes or JSON for machines.
    pub format: LogFormat,
    /// A level, or filter directives such as `info,outboxd=debug`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Auto, level: "info".to_owned() }
    }
}

/// `[telemetry]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// The base URL of the collector that gets spans; none are made when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
}

/// `[[token]]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Names the caller in logs.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// The token itself,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Secret>,
    /// or the environment variable that holds it,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_env: Option<String>,
    /// or the file that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_file: Option<String>,
}

/// `[[route]]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Names the route in logs and reports.
    pub name: String,
    /// Whose events it takes; the default outbox's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox: Option<String>,
    /// Patterns of event types.
    pub types: Vec<String>,
    /// Where to deliver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<RouteUrl>,
    /// A built-in handler instead of a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// How long one attempt may take.
    #[serde(default = "default_timeout", with = "duration")]
    pub timeout: Duration,
    /// What is sent.
    #[serde(default = "default_format")]
    pub format: String,
    /// Signing secrets,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<Secret>>,
    /// or the files that hold them,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_files: Option<Vec<String>>,
    /// or the environment variables that hold them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_env: Option<Vec<String>>,
    /// Answers that no further attempt can mend.
    #[serde(default)]
    pub dead_letter_on: Vec<u16>,
    /// How long an event may be deferred without a break.
    #[serde(default = "default_max_defer_age", with = "duration")]
    pub max_defer_age: Duration,
    /// Sent with each delivery.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderValue>,
    /// Delays between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// `retry = { … }` of a route: `base`, `factor`, `max` and `jitter`, or `schedule` and `jitter`, or `preset`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// The unit that the factor multiplies.
    #[serde(with = "optional_duration", skip_serializing_if = "Option::is_none")]
    pub base: Option<Duration>,
    /// Growth per attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest delay.
    #[serde(with = "optional_duration", skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// The largest share of a delay that is added at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// One delay per failed attempt.
    #[serde(with = "durations", skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Vec<Duration>>,
    /// A schedule by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

fn default_timeout() -> Duration {
    crate::handler::DEFAULT_TIMEOUT
}

fn default_format() -> String {
    "payload".to_owned()
}

fn default_max_defer_age() -> Duration {
    crate::outcome::Policy::default().max_defer_age
}
