//! Outboxes whose tables were there before: all of them for a service, the one that `--outbox` names for other commands.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use super::database::{self, FIRST_ANSWER, Schema};
use super::output::without_causes;
use crate::config::{AdoptedSettings, Config};
use crate::event::NewEvent;
use crate::handler::Registry;
use crate::processor::{DEFAULT_OUTBOX, LeasePolicy, OutboxParts, Outboxes, ProcessorSettings};
use crate::retention::Retention;
use crate::store::description::Description;
use crate::store::{Store, StoreError, StoreOptions, connect_adopted};

/// An outbox of a table that was there before, opened.
pub(super) struct AdoptedOutbox {
    /// By which requests choose it.
    pub(super) name: String,
    /// Its table.
    pub(super) store: Arc<dyn Store>,
    /// Its routes.
    pub(super) registry: Registry,
    /// How long each of its claims lasts.
    pub(super) lease: Duration,
    /// How long finished events are kept; they are never deleted when `None`.
    pub(super) retention: Option<Retention>,
}

/// Opens every adopted outbox beside the store `home`, whose database holds them all.
///
/// # Errors
/// A description that does not fit its table. A database that does not answer is only said: it may come back.
pub(super) async fn adopted(
    options: &StoreOptions,
    outboxes: Vec<AdoptedSettings>,
    home: &Arc<dyn Store>,
) -> anyhow::Result<Vec<AdoptedOutbox>> {
    let mut opened = Vec::with_capacity(outboxes.len());
    for AdoptedSettings { description, registry, retention } in outboxes {
        let (name, lease) = (description.name.clone(), description.lease);
        let store = open(options, description, home).await?;
        opened.push(AdoptedOutbox { name, store, registry, lease, retention });
    }
    Ok(opened)
}

/// The outboxes of an instance: the default one, if it is served, and the adopted ones.
///
/// # Errors
/// Settings under which events would run twice or never.
pub(super) fn together(
    default: Option<(Arc<dyn Store>, Registry)>,
    adopted: Vec<AdoptedOutbox>,
    settings: &ProcessorSettings,
) -> anyhow::Result<Outboxes> {
    let has_default = default.is_some();
    let default = default.map(|(store, registry)| {
        let name = DEFAULT_OUTBOX.to_owned();
        OutboxParts { name, store, registry, settings: settings.clone() }
    });
    let adopted = adopted.into_iter().map(|AdoptedOutbox { name, store, registry, lease, retention }| {
        let settings = ProcessorSettings { lease: LeasePolicy::Fixed(lease), retention, ..settings.clone() };
        OutboxParts { name, store, registry, settings }
    });
    let outboxes = Outboxes::new(default.into_iter().chain(adopted).collect())?;
    Ok(if has_default { outboxes } else { outboxes.without_default() })
}

/// Says in the log what the tables of these outboxes do not allow.
pub(super) async fn say_limitations(outboxes: &[AdoptedOutbox]) {
    for AdoptedOutbox { name, store, registry, lease, retention } in outboxes {
        let routes = registry.routes().len();
        tracing::info!(outbox = %name, routes, ?lease, deletes = retention.is_some(), "an adopted table is served");
        match store.limitations().await {
            Ok(limitations) => {
                for limitation in limitations {
                    tracing::info!(outbox = %name, "{limitation}");
                }
            }
            Err(error) => tracing::warn!(outbox = %name, %error, "the table's limitations cannot be read"),
        }
    }
}

async fn open(
    options: &StoreOptions,
    description: Description,
    home: &Arc<dyn Store>,
) -> anyhow::Result<Arc<dyn Store>> {
    let name = description.name.clone();
    let place = || format!("outbox {name:?} cannot be used");
    let store = connect_adopted(options, description, Arc::clone(home)).await.map_err(without_causes);
    let store = store.with_context(place)?;
    match tokio::time::timeout(FIRST_ANSWER, store.ready()).await {
        Ok(Ok(())) => {}
        Ok(Err(error @ (StoreError::Unavailable { .. } | StoreError::Locked { .. }))) => {
            tracing::warn!(outbox = %name, %error, "the outbox's table cannot be looked at yet");
        }
        Ok(Err(error)) => return Err(without_causes(error)).with_context(place),
        Err(_) => tracing::warn!(outbox = %name, "the outbox's table cannot be looked at yet: no answer in time"),
    }
    Ok(store)
}

/// Which outbox a command works on.
#[derive(Debug, Clone, Args)]
pub(super) struct OutboxArgument {
    /// Work on this outbox of the settings instead of the default one
    #[arg(long, value_name = "NAME")]
    outbox: Option<String>,
}

impl OutboxArgument {
    /// The name that was given.
    pub(super) fn name(&self) -> Option<&str> {
        self.outbox.as_deref()
    }

    /// The description of the outbox; `None` is the default one.
    ///
    /// # Errors
    /// Its name is unknown; says which there are.
    pub(super) fn description<'config>(&self, config: &'config Config) -> anyhow::Result<Option<&'config Description>> {
        Ok(config.described(self.outbox.as_deref())?)
    }
}

/// The outbox of one command, opened.
pub(super) struct Chosen {
    /// Its name.
    pub(super) name: String,
    /// The outbox.
    pub(super) store: Arc<dyn Store>,
    /// The default store on the same database, when the outbox is another one.
    home: Option<Arc<dyn Store>>,
}

impl Chosen {
    /// Opens the described outbox, or the default one.
    pub(super) async fn open(config: &Config, description: Option<&Description>) -> anyhow::Result<Self> {
        let home = database::open_configured(config, Schema::Require).await?;
        let Some(description) = description else {
            return Ok(Self { name: DEFAULT_OUTBOX.to_owned(), store: home, home: None });
        };
        let store = open(&config.store(), description.clone(), &home).await?;
        Ok(Self { name: description.name.clone(), store, home: Some(home) })
    }

    /// Closes its connections.
    pub(super) async fn close(&self) {
        self.store.close().await;
        if let Some(home) = &self.home {
            home.close().await;
        }
    }
}

/// Refuses what the table has no column for.
pub(super) fn check_columns(description: &Description, event: &NewEvent, limit_is_given: bool) -> anyhow::Result<()> {
    let columns = &description.columns;
    let lacking = [
        ("subject", event.subject.is_some() && columns.subject.is_none()),
        ("headers", !event.headers.is_empty() && columns.headers.is_none()),
        ("max_attempts", limit_is_given && columns.max_attempts.is_none()),
        ("idempotency_key", event.idempotency_key.is_some()),
    ];
    let lines: Vec<String> = lacking
        .into_iter()
        .filter(|(_, lacks)| *lacks)
        .map(|(field, _)| format!("/{field}: the outbox's table has no column for it"))
        .collect();
    if !lines.is_empty() {
        bail!("the event is refused by outbox {:?}\n  {}", description.name, lines.join("\n  "));
    }
    match &description.fixed_type {
        Some(fixed) if *fixed != event.event_type => {
            bail!("/type: every event of outbox {:?} is of the type {fixed:?}", description.name)
        }
        Some(_) | None => Ok(()),
    }
}
