//! How an instance works, and under which settings it refuses to.

use std::time::Duration;

use crate::handler::Registry;
use crate::lease::{LEASE_MARGIN, LEAST_LEASE_MARGIN};
use crate::otlp::Tracer;
use crate::retention::Retention;

/// Handlers that an instance may be told to run at once.
const MAX_CONCURRENCY: usize = 10_000;

/// How this instance works.
#[derive(Debug, Clone)]
pub struct ProcessorSettings {
    /// Handlers that run at once in this instance, over all runs.
    pub concurrency: usize,
    /// How long leases last.
    pub lease: LeasePolicy,
    /// Whether attempts that completed their event are kept in the log too.
    pub log_all_attempts: bool,
    /// How long finished events are kept; they are never deleted when `None`.
    pub retention: Option<Retention>,
    /// Takes the spans of runs, attempts and settlements; none are made when `None`.
    pub tracer: Option<Tracer>,
}

impl Default for ProcessorSettings {
    /// 64 handlers, automatic leases, only failures in the attempt log, nothing is ever deleted.
    fn default() -> Self {
        Self { concurrency: 64, lease: LeasePolicy::Auto, log_all_attempts: false, retention: None, tracer: None }
    }
}

/// How long a lease lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeasePolicy {
    /// Each route's timeout + 30 s.
    #[default]
    Auto,
    /// The same for every route; must exceed the longest timeout by 1 s.
    Fixed(Duration),
}

/// Why a processor cannot be made of these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Events would run twice.
    #[error(
        "run.lease is {lease:?} but route {route:?} has a timeout of {timeout:?}: a fixed lease must exceed the longest timeout by 1 s"
    )]
    LeaseTooShort {
        /// The lease as configured.
        lease: Duration,
        /// The route with the longest timeout.
        route: String,
        /// That timeout.
        timeout: Duration,
    },
    /// Nothing could ever run.
    #[error("run.concurrency must be 1 to 10000")]
    Concurrency,
}

impl ProcessorSettings {
    /// Judges the settings together with the routes they are to serve.
    ///
    /// # Errors
    /// See [`SettingsError`].
    pub fn check(&self, registry: &Registry) -> Result<(), SettingsError> {
        if !(1..=MAX_CONCURRENCY).contains(&self.concurrency) {
            return Err(SettingsError::Concurrency);
        }
        let LeasePolicy::Fixed(lease) = self.lease else { return Ok(()) };
        match registry.routes().iter().max_by_key(|route| route.timeout) {
            Some(route) if lease < route.timeout.saturating_add(LEAST_LEASE_MARGIN) => {
                Err(SettingsError::LeaseTooShort { lease, route: route.name.clone(), timeout: route.timeout })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// How long a lease lasts on an event whose handler may take `timeout`.
    #[must_use]
    pub fn lease_for(&self, timeout: Duration) -> Duration {
        match self.lease {
            LeasePolicy::Auto => timeout.saturating_add(LEASE_MARGIN),
            LeasePolicy::Fixed(lease) => lease,
        }
    }
}
