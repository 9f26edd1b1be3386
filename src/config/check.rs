//! Which values the settings may have, apart from tokens and routes: every range, and what contradicts what.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use super::problem::{ConfigError, Problems};
use super::ranges::{CONCURRENCY, MAX_BODY_BYTES, MAX_CONNECTIONS, MAX_PAYLOAD_BYTES};
use super::settings::Settings;
use super::text::written;
use crate::otlp::Endpoint;
use crate::telemetry::check_level;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// The longest that anything may be kept or put off: ten years.
pub(super) const LONGEST: Duration = Duration::from_hours(3650 * 24);

/// Judges every scalar.
pub(super) fn check(settings: &Settings) -> Result<(), ConfigError> {
    let mut problems = Problems::default();
    let url = settings.database_url.reveal();
    if !["postgres://", "postgresql://", "sqlite:"].iter().any(|scheme| url.starts_with(scheme)) {
        problems.add("database_url", "must begin with postgres://, postgresql:// or sqlite://");
    }
    problems.keep(listen_address(&settings.server.listen));
    check_sizes(settings, &mut problems);
    check_durations(settings, &mut problems);
    if let Err(error) = check_level(&settings.log.level) {
        problems.add("log.level", error);
    }
    if let Some(Err(problem)) = settings.telemetry.otlp_endpoint.as_deref().map(str::parse::<Endpoint>) {
        problems.add("telemetry.otlp_endpoint", problem);
    }
    problems.finish()
}

fn check_sizes(settings: &Settings, problems: &mut Problems) {
    let server = &settings.server;
    problems.range("server.max_payload_bytes", &server.max_payload_bytes, &MAX_PAYLOAD_BYTES);
    problems.range("server.max_body_bytes", &server.max_body_bytes, &MAX_BODY_BYTES);
    if server.max_body_bytes < server.max_payload_bytes {
        problems.add(
            "server.max_body_bytes",
            format!(
                "{} is less than server.max_payload_bytes ({}): no event of that size could be enqueued",
                server.max_body_bytes, server.max_payload_bytes
            ),
        );
    }
    problems.range("run.concurrency", &settings.run.concurrency, &CONCURRENCY);
    problems.range("database.max_connections", &settings.database.max_connections, &MAX_CONNECTIONS);
}

fn check_durations(settings: &Settings, problems: &mut Problems) {
    let mut range = |key, value, least, most| duration_range(problems, key, value, least, most);
    range("server.shutdown_grace", settings.server.shutdown_grace, Duration::ZERO, HOUR);
    range("run.max_runtime_cap", settings.run.max_runtime_cap, Duration::from_secs(1), DAY);
    range("retention.completed", settings.retention.completed, Duration::from_secs(1), LONGEST);
    range("retention.skipped", settings.retention.skipped, Duration::from_secs(1), LONGEST);
    if let Some(lease) = settings.run.lease {
        range("run.lease", lease, Duration::from_secs(2), DAY);
    }
    if let Some(interval) = settings.poller.interval {
        range("poller.interval", interval, Duration::from_millis(100), HOUR);
    }
}

/// Adds a duration that lies outside its range.
pub(super) fn duration_range(problems: &mut Problems, key: &str, value: Duration, least: Duration, most: Duration) {
    if value < least || value > most {
        let (value, least, most) = (written(value), written(least), written(most));
        problems.add(key, format!("{value:?} is out of range: valid are {least:?} to {most:?}"));
    }
}

/// The address that the server listens on.
pub(super) fn listen_address(listen: &str) -> Result<SocketAddr, ConfigError> {
    let local = || listen.strip_prefix("localhost:").and_then(|_| listen.to_socket_addrs().ok()?.next());
    listen.parse().ok().or_else(local).ok_or_else(|| {
        ConfigError::one(format!(
            "server.listen: {listen:?} is no address with a port: valid are such as \"127.0.0.1:8080\" or \"[::]:8080\""
        ))
    })
}
