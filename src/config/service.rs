//! What each command needs of the settings, in the words of the modules that it is for.

use std::net::SocketAddr;
use std::time::Duration;

use super::outbox::DEFAULT_NAME;
use super::problem::{ConfigError, Problems};
use super::tokens::{KnownToken, known_tokens};
use super::{Config, check, routing};
use crate::api::{ApiSettings, Scopes, Token};
use crate::handler::Registry;
use crate::otlp::Endpoint;
use crate::processor::{LeasePolicy, ProcessorSettings};
use crate::retention::Retention;
use crate::store::StoreOptions;
use crate::store::description::Description;
use crate::telemetry::LogSettings;

/// Everything that a resident service needs. Has no `Debug`: it holds the secrets in clear.
pub struct ServiceSettings {
    /// The database.
    pub store: StoreOptions,
    /// The workflow.
    pub processor: ProcessorSettings,
    /// The routes of the default outbox.
    pub registry: Registry,
    /// Whether the default outbox is served; its tables stand beside the adopted ones in any case.
    pub default_outbox: bool,
    /// The outboxes whose tables were there before, in the order in which they are written.
    pub adopted: Vec<AdoptedSettings>,
    /// The HTTP interface.
    pub api: ApiSettings,
    /// Where it listens.
    pub listen: SocketAddr,
    /// How long running handlers may go on after SIGTERM.
    pub shutdown_grace: Duration,
    /// How often the poller runs, if it does.
    pub poll_interval: Option<Duration>,
    /// The collector that gets spans, if one does.
    pub otlp: Option<Endpoint>,
}

/// An outbox whose table was there before.
#[derive(Debug, Clone)]
pub struct AdoptedSettings {
    /// The table. Its lease exceeds the longest timeout of its routes.
    pub description: Description,
    /// The routes.
    pub registry: Registry,
    /// How long finished events are kept; they are never deleted when `None`.
    pub retention: Option<Retention>,
}

impl Config {
    /// The log.
    #[must_use]
    pub fn log(&self) -> LogSettings {
        LogSettings { format: self.settings.log.format, level: self.settings.log.level.clone() }
    }

    /// The database.
    #[must_use]
    pub fn store(&self) -> StoreOptions {
        StoreOptions {
            max_connections: self.settings.database.max_connections,
            pooler: self.settings.database.pooler,
            max_payload_bytes: self.settings.server.max_payload_bytes,
            ..StoreOptions::new(self.settings.database_url.reveal())
        }
    }

    /// The collector that gets spans, if one does.
    #[must_use]
    pub fn otlp(&self) -> Option<Endpoint> {
        self.settings.telemetry.otlp_endpoint.as_deref()?.parse().ok()
    }

    /// The workflow, without a tracer.
    #[must_use]
    pub fn processor(&self) -> ProcessorSettings {
        let (run, kept) = (&self.settings.run, &self.settings.retention);
        ProcessorSettings {
            concurrency: run.concurrency,
            lease: run.lease.map_or(LeasePolicy::Auto, LeasePolicy::Fixed),
            log_all_attempts: run.attempt_log == super::settings::AttemptLog::All,
            retention: Some(Retention { completed: kept.completed, skipped: kept.skipped }),
            tracer: None,
        }
    }

    /// The longest run that a caller may ask for.
    #[must_use]
    pub fn max_runtime_cap(&self) -> Duration {
        self.settings.run.max_runtime_cap
    }

    /// How long running handlers may go on when the program is asked to stop.
    #[must_use]
    pub fn shutdown_grace(&self) -> Duration {
        self.settings.server.shutdown_grace
    }

    /// Whether the default outbox is served.
    #[must_use]
    pub fn default_outbox(&self) -> bool {
        self.settings.default_outbox
    }

    /// The routes of the default outbox, and the adopted outboxes with theirs.
    ///
    /// # Errors
    /// Everything that is wrong with any route.
    pub fn outboxes(&self) -> Result<(Registry, Vec<AdoptedSettings>), ConfigError> {
        let registries = routing::registries(&self.settings, &self.environment)?;
        let adopted = self.described.iter().cloned().zip(registries.adopted).map(|(described, registry)| {
            AdoptedSettings { description: described.description, registry, retention: described.retention }
        });
        Ok((registries.default, adopted.collect()))
    }

    /// The adopted outboxes without their routes, which need secrets that are not everywhere.
    #[must_use]
    pub fn outboxes_without_routes(&self) -> Vec<AdoptedSettings> {
        let adopted = self.described.iter().cloned().map(|described| AdoptedSettings {
            description: described.description,
            registry: Registry::default(),
            retention: described.retention,
        });
        adopted.collect()
    }

    /// The description of the outbox that the flag `--outbox` names; `None` is the default outbox.
    ///
    /// # Errors
    /// There is no such outbox; names those that there are.
    pub fn described(&self, named: Option<&str>) -> Result<Option<&Description>, ConfigError> {
        if self.settings.default_outbox && named.is_none_or(|name| name == DEFAULT_NAME) {
            return Ok(None);
        }
        let mut descriptions = self.described.iter().map(|described| &described.description);
        let found = descriptions.find(|description| named == Some(description.name.as_str()));
        found.map(Some).ok_or_else(|| routing::unknown_outbox("--outbox", named, &self.settings))
    }

    /// The whole service.
    ///
    /// # Errors
    /// Everything that is wrong with tokens and routes; an address that others can reach while nobody needs a token,
    /// unless that was asked for.
    pub fn service(&self) -> Result<ServiceSettings, ConfigError> {
        let mut problems = Problems::default();
        let outboxes = problems.keep(self.outboxes());
        let tokens = problems.keep(self.tokens());
        let listen = problems.keep(check::listen_address(&self.settings.server.listen));
        if let (Some(tokens), Some(listen)) = (&tokens, &listen)
            && tokens.is_empty()
            && !listen.ip().is_loopback()
            && !self.insecure_no_auth
        {
            problems.add(
                "server.listen",
                format!(
                    "\"{listen}\" can be reached by others while no token is configured: valid are a [[token]], \
                     CRON_SECRET, a loopback address such as \"127.0.0.1:8080\", or the flag --insecure-no-auth"
                ),
            );
        }
        problems.finish()?;
        let (Some(outboxes), Some(tokens), Some(listen)) = (outboxes, tokens, listen) else {
            return Err(ConfigError::one("the settings cannot be used"));
        };
        Ok(self.put_together(outboxes, tokens, listen))
    }

    fn put_together(
        &self,
        (registry, adopted): (Registry, Vec<AdoptedSettings>),
        tokens: Vec<Token>,
        listen: SocketAddr,
    ) -> ServiceSettings {
        let settings = &self.settings;
        ServiceSettings {
            store: self.store(),
            processor: self.processor(),
            registry,
            default_outbox: settings.default_outbox,
            adopted,
            api: ApiSettings {
                tokens,
                max_body_bytes: settings.server.max_body_bytes,
                max_payload_bytes: settings.server.max_payload_bytes,
                max_runtime_cap: settings.run.max_runtime_cap,
                public_metrics: settings.server.public_metrics,
                ..ApiSettings::default()
            },
            listen,
            shutdown_grace: settings.server.shutdown_grace,
            poll_interval: settings.poller.interval,
            otlp: self.otlp(),
        }
    }

    pub(super) fn known_tokens(&self) -> Result<Vec<KnownToken>, ConfigError> {
        known_tokens(&self.settings.tokens, &self.environment)
    }

    fn tokens(&self) -> Result<Vec<Token>, ConfigError> {
        let mut problems = Problems::default();
        let mut tokens = Vec::new();
        for known in self.known_tokens()? {
            let key = format!("token ({:?})", known.name);
            let scopes: Result<Scopes, _> = known.scopes.iter().map(|scope| scope.parse()).collect();
            match scopes.map(|scopes| Token::new(known.name, scopes, known.secret.reveal())) {
                Ok(Ok(token)) => tokens.push(token),
                Ok(Err(empty)) => problems.add(&key, empty),
                Err(unknown) => problems.add(&format!("{key}.scopes"), unknown),
            }
        }
        problems.finish()?;
        Ok(tokens)
    }
}
