//! What `outboxd config check` prints: the effective settings with secrets masked, how long each route goes on trying,
//! and what is allowed but probably not meant. Everything but the settings is a comment, so that the whole is TOML.

use std::fmt::Write as _;
use std::time::Duration;

use super::problem::ConfigError;
use super::{Config, text};
use crate::event::DEFAULT_MAX_ATTEMPTS;

impl Config {
    /// The report.
    ///
    /// # Errors
    /// Everything that is wrong with the settings.
    pub fn report(&self) -> Result<String, ConfigError> {
        let service = self.service()?;
        let settings = toml::to_string(&self.settings)
            .map_err(|error| ConfigError::one(format!("the settings cannot be shown: {error}")))?;
        let mut report = format!("# effective settings, secrets masked\n{settings}");
        let attempts = DEFAULT_MAX_ATTEMPTS.unsigned_abs();
        let _ = write!(report, "\n# retry horizon: from the first attempt to the last of {attempts}, when all fail\n");
        if service.registry.routes().is_empty() {
            report.push_str("#   no routes\n");
        }
        for route in service.registry.routes() {
            let horizon = in_words(route.policy.retry.horizon(attempts));
            let types: Vec<String> = route.types.iter().map(ToString::to_string).collect();
            let _ = writeln!(report, "#   {} ({}): {horizon}", route.name, types.join(", "));
        }
        let warnings = self.warnings(&service);
        report.push_str(if warnings.is_empty() { "\n# no warnings\n" } else { "\n# warnings\n" });
        for warning in warnings {
            let _ = writeln!(report, "#   {warning}");
        }
        Ok(report)
    }
}

/// A duration to the two largest units that it has: nobody needs the seconds of a week.
fn in_words(duration: Duration) -> String {
    let whole = text::written(Duration::from_secs(duration.as_secs()));
    whole.split(' ').take(2).collect::<Vec<_>>().join(" ")
}
