//! What `outboxd config check` prints: the effective settings with secrets masked, how long each route goes on trying,
//! and what is allowed but probably not meant. Everything but the settings is a comment, so that the whole is TOML.

use std::fmt::Write as _;
use std::time::Duration;

use super::problem::ConfigError;
use super::{Config, text};
use crate::event::DEFAULT_MAX_ATTEMPTS;
use crate::handler::Registry;
use crate::store::description::Description;

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
        let _ = write!(
            report,
            "\n# retry horizon: from the first attempt to the last of {DEFAULT_MAX_ATTEMPTS}, when all fail\n"
        );
        if self.settings.routes.is_empty() {
            report.push_str("#   no routes\n");
        }
        write_horizons(&mut report, &service.registry, DEFAULT_MAX_ATTEMPTS);
        for outbox in &service.adopted {
            let Description { name, max_attempts, .. } = &outbox.description;
            let _ = writeln!(report, "# outbox {name:?}: of {max_attempts} attempts");
            write_horizons(&mut report, &outbox.registry, *max_attempts);
        }
        let warnings = self.warnings(&service);
        report.push_str(if warnings.is_empty() { "\n# no warnings\n" } else { "\n# warnings\n" });
        for warning in warnings {
            let _ = writeln!(report, "#   {warning}");
        }
        Ok(report)
    }
}

/// How long each route goes on trying.
fn write_horizons(report: &mut String, registry: &Registry, attempts: i32) {
    for route in registry.routes() {
        let horizon = in_words(route.policy.retry.horizon(attempts.unsigned_abs()));
        let types: Vec<String> = route.types.iter().map(ToString::to_string).collect();
        let _ = writeln!(report, "#   {} ({}): {horizon}", route.name, types.join(", "));
    }
}

/// A duration to the two largest units that it has: nobody needs the seconds of a week.
fn in_words(duration: Duration) -> String {
    let whole = text::written(Duration::from_secs(duration.as_secs()));
    whole.split(' ').take(2).collect::<Vec<_>>().join(" ")
}
