//! The outboxes of one instance, each with its own table, routes and leases; slots and shutdown are common to all.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::together::Together;
use super::{Processor, ProcessorSettings, RunError, RunRequest, SettingsError};
use crate::handler::Registry;
use crate::run::RunReport;
use crate::store::Store;

/// How long writing down what has ended may hold up a shutdown.
const LAST_MINUTE: Duration = Duration::from_secs(1);

/// The name of the outbox in our own tables.
pub const DEFAULT_OUTBOX: &str = "default";

/// What one outbox is made of.
pub struct OutboxParts {
    /// What requests call it.
    pub name: String,
    /// Where its events are.
    pub store: Arc<dyn Store>,
    /// Its routes.
    pub registry: Registry,
    /// Its leases and its attempt log. The concurrency is the instance's: the first outbox's counts.
    pub settings: ProcessorSettings,
}

/// Outboxes in their order. Cheap to clone.
#[derive(Clone)]
pub struct Outboxes {
    all: Arc<[Processor]>,
    /// The first of them.
    home: Processor,
    has_default: bool,
}

/// Why outboxes cannot work together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboxesError {
    /// There is none.
    #[error("no outbox is configured: at least one is needed")]
    None,
    /// A request could not tell them apart.
    #[error("two outboxes are called {name:?}: each needs a name of its own")]
    SameName {
        /// Their name.
        name: String,
    },
    /// One of them cannot work under its settings.
    #[error("outbox {outbox:?}: {source}")]
    Settings {
        /// Which one.
        outbox: String,
        /// Why.
        source: SettingsError,
    },
}

/// Nobody knows an outbox of this name, or one must be named and was not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownOutbox {
    /// The name that was given, if one was.
    pub name: Option<String>,
    /// The names that would be valid.
    pub known: Vec<String>,
}

impl std::fmt::Display for UnknownOutbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let known = known.join(", ");
        match &self.name {
            Some(_) => write!(formatter, "there is no outbox of this name; valid are: {known}"),
            None => write!(formatter, "`outbox` must be given, there is no default one; valid are: {known}"),
        }
    }
}

impl Outboxes {
    /// Puts outboxes together. The first is the one that is meant where none is named, and keeps the runs over several.
    ///
    /// # Errors
    /// See [`OutboxesError`].
    pub fn new(parts: Vec<OutboxParts>) -> Result<Self, OutboxesError> {
        let mut all: Vec<Processor> = Vec::with_capacity(parts.len());
        for OutboxParts { name, store, registry, settings } in parts {
            if all.iter().any(|other| other.outbox() == name) {
                return Err(OutboxesError::SameName { name });
            }
            if let Err(source) = settings.check(&registry) {
                return Err(OutboxesError::Settings { outbox: name, source });
            }
            all.push(match all.first() {
                None => Processor::alone(&name, store, registry, settings),
                Some(first) => first.beside(&name, store, registry, settings),
            });
        }
        let home = all.first().cloned().ok_or(OutboxesError::None)?;
        Ok(Self { all: all.into(), home, has_default: true })
    }

    /// The same, but where there are several each request has to name the one that it means.
    #[must_use]
    pub fn without_default(self) -> Self {
        Self { has_default: self.all.len() == 1, ..self }
    }

    /// The outbox of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Processor> {
        self.all.iter().find(|processor| processor.outbox() == name)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> slice::Iter<'_, Processor> {
        self.all.iter()
    }

    /// The outbox that is meant where none is named, if there is one.
    #[must_use]
    pub fn default_outbox(&self) -> Option<&Processor> {
        self.has_default.then_some(&self.home)
    }

    /// The first outbox, whose store keeps the runs over several.
    #[must_use]
    pub fn home(&self) -> &Processor {
        &self.home
    }

    /// The outbox of this name, or the default one.
    ///
    /// # Errors
    /// None has this name; or none was named and there is no default one.
    pub fn choose(&self, name: Option<&str>) -> Result<&Processor, UnknownOutbox> {
        let chosen = match name {
            Some(name) => self.get(name),
            None => self.default_outbox(),
        };
        chosen.ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: Option<&str>) -> UnknownOutbox {
        let known = self.iter().map(|processor| processor.outbox().to_owned()).collect();
        UnknownOutbox { name: name.map(str::to_owned), known }
    }

    /// The outboxes that a run without a name serves (all of them), or the one that is named.
    fn served(&self, outbox: Option<&str>) -> Result<&[Processor], UnknownOutbox> {
        match outbox {
            None => Ok(&self.all),
            Some(name) => self.get(name).map(slice::from_ref).ok_or_else(|| self.unknown(outbox)),
        }
    }

    /// One bounded run over this outbox, or over all: side by side, within one budget and one batch, with one report. An
    /// outbox whose database fails does not hold up the others; the run fails in the end.
    /// Dropping the future stops further claims; deliveries that have begun are still settled.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run(&self, request: RunRequest, outbox: Option<&str>) -> Result<RunReport, RunError> {
        let several = match self.served(outbox)? {
            [only] => return only.run(request).await,
            several => several,
        };
        let tasks = &self.home().shared.tasks;
        let _begun = tasks.token();
        let run = Together::new(several, request)?;
        let hung_up = CancellationToken::new();
        let _caller = hung_up.clone().drop_guard();
        let task = tasks.spawn(run.drive(hung_up));
        task.await.unwrap_or_else(|error| Err(RunError::Panicked { reason: error.to_string() }))
    }

    /// Begins such a run and returns its first report (`running`) at once; it is kept in the first outbox's database, or
    /// in that of the outbox that was named.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn start(&self, request: RunRequest, outbox: Option<&str>) -> Result<RunReport, RunError> {
        let several = match self.served(outbox)? {
            [only] => return only.start(request).await,
            several => several,
        };
        let tasks = &self.home().shared.tasks;
        let _begun = tasks.token();
        let mut run = Together::new(several, request)?;
        let report = run.announce().await?;
        tasks.spawn(async move {
            // What went wrong stands in the log and in the run's record.
            let _ = run.drive(CancellationToken::new()).await;
        });
        Ok(report)
    }

    /// See [`Processor::begin_shutdown`]; of all outboxes.
    pub fn begin_shutdown(&self) {
        self.home().begin_shutdown();
    }

    /// Whether [`Outboxes::begin_shutdown`] was called.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.home().is_shutting_down()
    }

    /// See [`Processor::shut_down`]; of all outboxes.
    pub async fn shut_down(&self, grace: Duration) {
        self.home().shut_down(grace).await;
        self.iter().for_each(Processor::write_down_minute);
        // A chart is not worth more of a wait.
        let _ = timeout(LAST_MINUTE, self.home().shared.tasks.wait()).await;
    }
}

impl From<Processor> for Outboxes {
    fn from(processor: Processor) -> Self {
        Self { all: Arc::new([processor.clone()]), home: processor, has_default: true }
    }
}

impl<'a> IntoIterator for &'a Outboxes {
    type Item = &'a Processor;
    type IntoIter = slice::Iter<'a, Processor>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
