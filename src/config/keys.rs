//! The path of every setting, for the names of environment variables and for the example file's test.

use figment::value::{Num, Value};

/// How a setting's text in the environment is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// As it stands.
    Text,
    /// As a whole number.
    Number,
    /// As `true` or `false`.
    Flag,
    /// As a list of tables, written as in the file.
    Tables,
}

impl Kind {
    /// The value that a variable's text stands for. Text that does not fit stays text, which is refused with the
    /// setting's name when the settings are put together.
    pub(super) fn value(self, text: &str) -> Value {
        let fitting = match self {
            Self::Text => None,
            Self::Number => text.trim().parse::<u64>().ok().map(|number| Value::from(Num::U64(number))),
            Self::Flag => text.trim().parse::<bool>().ok().map(Value::from),
            Self::Tables => text.parse::<Value>().ok(),
        };
        fitting.unwrap_or_else(|| Value::from(text))
    }
}

/// Everything that can be set, except what stands inside tokens, outboxes and routes.
pub(super) const KEYS: [(&str, Kind); 22] = [
    ("database_url", Kind::Text),
    ("default_outbox", Kind::Flag),
    ("server.listen", Kind::Text),
    ("server.max_body_bytes", Kind::Number),
    ("server.max_payload_bytes", Kind::Number),
    ("server.public_metrics", Kind::Flag),
    ("server.shutdown_grace", Kind::Text),
    ("run.concurrency", Kind::Number),
    ("run.lease", Kind::Text),
    ("run.attempt_log", Kind::Text),
    ("run.max_runtime_cap", Kind::Text),
    ("poller.interval", Kind::Text),
    ("database.max_connections", Kind::Number),
    ("database.pooler", Kind::Flag),
    ("retention.completed", Kind::Text),
    ("retention.skipped", Kind::Text),
    ("log.format", Kind::Text),
    ("log.level", Kind::Text),
    ("telemetry.otlp_endpoint", Kind::Text),
    ("token", Kind::Tables),
    ("outbox", Kind::Tables),
    ("route", Kind::Tables),
];

/// The environment variable of a setting.
pub(super) fn variable(key: &str) -> String {
    format!("OUTBOXD_{}", key.replace('.', "__").to_uppercase())
}
