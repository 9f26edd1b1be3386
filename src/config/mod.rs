//! The settings of the program: read in layers, judged as a whole, handed to each module in its own words.
//!
//! Defaults ← file ← environment ← flags. Nothing is guessed: an unknown key, a value out of its range, two sources for
//! one secret or an empty secret is refused before anything starts, all problems at once, each with its key, its value
//! and what would be valid; the values of secrets are never repeated. No other module reads a file or the environment.

mod check;
mod client;
mod environment;
mod keys;
mod layers;
mod outbox;
mod problem;
mod ranges;
mod receivers;
mod report;
mod retry;
mod routes;
mod routing;
mod secret;
mod service;
mod settings;
mod text;
mod tokens;
mod warnings;

pub use client::ServerAddress;
pub use environment::Environment;
pub use layers::Sources;
pub use problem::ConfigError;
pub use secret::{Secret, mask_url};
pub use service::{AdoptedSettings, ServiceSettings};

use outbox::Described;
use problem::Problems;
use settings::Settings;

/// Settings that have been read, whose scalars are in their ranges and whose outboxes are described. Tokens and routes are judged when they are
/// asked for, so that a command that needs only the database does not need their secrets.
#[derive(Clone)]
pub struct Config {
    settings: Settings,
    described: Vec<Described>,
    environment: Environment,
    insecure_no_auth: bool,
    names_a_database: bool,
}

impl Config {
    /// Reads and judges.
    ///
    /// # Errors
    /// Everything that is wrong, as far as it could be read.
    pub fn read(sources: &Sources) -> Result<Self, ConfigError> {
        let settings = sources.settings()?;
        let mut problems = Problems::default();
        problems.keep(check::check(&settings));
        let described = problems.keep(outbox::described(&settings)).unwrap_or_default();
        problems.finish()?;
        Ok(Self {
            settings,
            described,
            environment: sources.environment.clone(),
            insecure_no_auth: false,
            names_a_database: sources.names_a_database(),
        })
    }

    /// Allows an address that others can reach while nobody needs a token.
    #[must_use]
    pub fn without_auth(mut self, insecure_no_auth: bool) -> Self {
        self.insecure_no_auth = insecure_no_auth;
        self
    }
}

#[cfg(test)]
mod example;
