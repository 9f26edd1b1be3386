//! The log: one stream of structured lines on standard error, as text for eyes or JSON for machines.
//!
//! What goes into a line is decided where it is written; this module only decides how it looks and which lines are
//! kept. The database driver's own lines are kept from `warn` upwards at most, for below that it logs statements, and
//! none of those that show parts of a database's URL.

use std::io::{self, IsTerminal as _};

use serde::{Deserialize, Serialize};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, registry};

/// How the log looks and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// Text or JSON.
    pub format: LogFormat,
    /// A level, or filter directives such as `info,outboxd=debug`.
    pub level: String,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { format: LogFormat::Auto, level: "info".to_owned() }
    }
}

/// Text for eyes or JSON for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// One JSON object a line.
    Json,
    /// One line of text each.
    Text,
}

/// The log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level is no level and no list of directives.
    #[error(
        "{level:?} is not valid: valid are error, warn, info, debug, trace, off and directives such as \"info,outboxd=debug\""
    )]
    Level {
        /// As it was written.
        level: String,
    },
    /// The process has a log already.
    #[error("the log has been set up already")]
    AlreadySet,
}

/// Judges a level.
///
/// # Errors
/// Text that is neither a level nor a list of directives.
pub fn check_level(level: &str) -> Result<(), TelemetryError> {
    filter(level).map(|_| ())
}

/// Sends the process's log to standard error from now on.
///
/// # Errors
/// A level that is not valid, or a second call.
pub fn init(settings: &LogSettings) -> Result<(), TelemetryError> {
    let on_terminal = io::stderr().is_terminal();
    let as_json = match settings.format {
        LogFormat::Auto => !on_terminal,
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let colours = on_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = layer().with_writer(io::stderr);
    let lines = if as_json {
        lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    } else {
        lines.with_ansi(colours).with_target(false).boxed()
    };
    registry()
        .with(filter(&settings.level)?)
        .with(filter_fn(may_be_shown))
        .with(lines)
        .try_init()
        .map_err(|_| TelemetryError::AlreadySet)
}

fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    let invalid = || TelemetryError::Level { level: level.to_owned() };
    // A bare word that is no level would be taken for a target and silence everything else.
    let levels = ["error", "warn", "info", "debug", "trace", "off"];
    let known = |word: &str| word.contains(['=', '[']) || levels.contains(&word.to_ascii_lowercase().as_str());
    if !level.split(',').map(str::trim).all(known) {
        return Err(invalid());
    }
    EnvFilter::try_new(level).map_err(|_| invalid())
}

/// Whatever level is asked for, the driver's log of statements stays out, and so do the lines in which it repeats what
/// it does not understand of a database's URL (`sslpassword=…`).
fn may_be_shown(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    !target.starts_with("sqlx") || (*metadata.level() <= Level::WARN && !target.ends_with("::options::parse"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_valid_and_other_words_are_not() {
        for level in ["info", "WARN", "off", "info,outboxd=debug", "outboxd::poller=trace, warn"] {
            assert!(check_level(level).is_ok(), "{level}");
        }
        for level in ["", "loud", "info,", "info,outboxd=loud"] {
            assert!(check_level(level).is_err(), "{level}");
        }
    }
}
