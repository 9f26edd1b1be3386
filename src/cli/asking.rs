//! What commands about events have in common: whom they ask, about which outbox, and in which form they answer.

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::global::Global;
use super::inside::Inside;
use super::outboxes::{Chosen, OutboxArgument};
use super::output::NotUnderstood;
use super::process::event_id;
use super::remote::{Server, ServerArguments};
use crate::telemetry;

/// Options of every such command.
#[derive(Debug, Clone, Args)]
pub(super) struct Asking {
    /// Print the answer as JSON
    #[arg(long, display_order = 799)]
    pub(super) json: bool,
    #[command(flatten)]
    outbox: OutboxArgument,
    #[command(flatten)]
    server: ServerArguments,
}

impl Asking {
    /// Opens the way to the server, or to the database. Ids that no event of the default outbox can have are refused before
    /// anything is connected to.
    ///
    /// # Errors
    /// The settings, the server's URL, the token or an id cannot be used, or the database does not answer.
    pub(super) async fn begin(&self, global: &Global, ids: &[&str]) -> anyhow::Result<Asked> {
        if let Some(server) = self.server.open(global)? {
            let outbox = self.outbox.name().map(str::to_owned);
            return Ok(Asked { server, outbox, json: self.json });
        }
        let config = global.read(None)?;
        let mut log = config.log();
        if log.level == "info" {
            // What the interface notes of a change for a service's log, the command itself says.
            log.level.push_str(",outboxd::api=warn");
        }
        telemetry::init(&log)?;
        let description = self.outbox.description(&config)?;
        if description.is_none() {
            for id in ids {
                event_id(id).map_err(|problem| NotUnderstood(format!("invalid value '{id}' for '<ID>': {problem}")))?;
            }
        }
        let chosen = Chosen::open(&config, description).await?;
        // There is no other outbox beside it, so that none has to be named.
        let server = Server::within(Inside::new(&config, chosen)?)?;
        Ok(Asked { server, outbox: None, json: self.json })
    }
}

/// Whom a command asks.
pub(super) struct Asked {
    server: Server,
    outbox: Option<String>,
    json: bool,
}

impl Asked {
    /// GET, for a text that `show` makes of what is answered, or for the JSON itself; the outbox is added to the query.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        mut query: Vec<(&str, String)>,
        show: impl FnOnce(T) -> String,
    ) -> anyhow::Result<String> {
        query.extend(self.outbox());
        if self.json { self.server.get(path, &query).await } else { self.server.get_as(path, &query).await.map(show) }
    }

    /// POST, in the same forms; the outbox is the query.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &(impl Serialize + Sync),
        show: impl FnOnce(T) -> String,
    ) -> anyhow::Result<String> {
        let query: Vec<(&str, String)> = self.outbox().into_iter().collect();
        if self.json { self.server.post(path, &query, body).await } else { self.post_as(path, body).await.map(show) }
    }

    /// POST, for what is answered.
    pub(super) async fn post_as<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &(impl Serialize + Sync),
    ) -> anyhow::Result<T> {
        self.server.post_as(path, &self.outbox().into_iter().collect::<Vec<_>>(), body).await
    }

    fn outbox(&self) -> Option<(&'static str, String)> {
        self.outbox.clone().map(|outbox| ("outbox", outbox))
    }

    /// Closes what was opened.
    pub(super) async fn close(&self) {
        self.server.close().await;
    }
}

/// Query parameters of texts that may be given.
pub(super) fn given<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<(&'a str, String)> {
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A query parameter that is given several times.
pub(super) fn each(name: &str, values: Vec<String>) -> impl Iterator<Item = (&str, String)> {
    values.into_iter().map(move |value| (name, value))
}
