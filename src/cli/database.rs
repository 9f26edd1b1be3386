//! Opening the database for a command: bounded in time, and with words that say what to do.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::output::without_causes;
use crate::config::{Config, mask_url};
use crate::store::{ConnectError, Store, StoreError, StoreOptions, connect};

/// How long a database may take to answer for the first time.
pub(super) const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// What to do about a schema that is missing or older than this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// Bring it up to date.
    Migrate,
    /// Leave it and fail.
    Require,
}

/// Opens the database that the settings name, and says so when they name none.
pub(super) async fn open_configured(config: &Config, schema: Schema) -> anyhow::Result<Arc<dyn Store>> {
    if let Some(warning) = config.database_warning() {
        tracing::warn!("{warning}");
    }
    open(&config.store(), schema).await
}

/// Connects, waits for the first answer and sees to the schema.
pub(super) async fn open(options: &StoreOptions, schema: Schema) -> anyhow::Result<Arc<dyn Store>> {
    let place = || format!("database_url {} cannot be used", mask_url(&options.url));
    let first_answer = async {
        let store = connect(options).await.map_err(not_opened)?;
        let ready = store.ready().await;
        anyhow::Ok((store, ready))
    };
    let (store, ready) = tokio::time::timeout(FIRST_ANSWER, first_answer)
        .await
        .map_err(|_| anyhow!("no answer within {} s", FIRST_ANSWER.as_secs()))
        .flatten()
        .with_context(place)?;
    match (ready, schema) {
        (Ok(()), _) => Ok(store),
        // Not bounded: a migration of a large table takes as long as it takes.
        (Err(StoreError::SchemaOutdated), Schema::Migrate) => {
            store.migrate().await.map_err(without_causes).with_context(place)?;
            tracing::info!("the database schema was created or upgraded");
            Ok(store)
        }
        (Err(StoreError::Unavailable { reason, source }), _) => {
            let advice = advice(&reason, source.as_deref());
            Err(anyhow!("the database is unavailable: {reason}{advice}")).with_context(place)
        }
        (Err(error), _) => Err(without_causes(error)).with_context(place),
    }
}

/// What to look at, as the end of the sentence that names the reason.
fn advice(reason: &str, source: Option<&(dyn Error + Send + Sync)>) -> &'static str {
    // The standard library has no kind for this; its words are the only sign.
    let unresolved = source.is_some_and(|error| error.to_string().contains("failed to lookup address"));
    match reason {
        _ if unresolved => "; its host name cannot be resolved: check the name in the URL",
        "the database does not exist" => "; create it, or check the name at the end of the URL",
        "the server refused the login" => "; check user and password",
        _ if reason.contains("database.pooler") => "",
        _ => "; check that it is running and that host, port and login are right",
    }
}

/// Why a database could not be opened. Only a file fails so early; a server is dialled on first use.
fn not_opened(error: ConnectError) -> anyhow::Error {
    match error {
        ConnectError::Store(StoreError::Unavailable { .. }) => {
            anyhow!("{error}; check that this user may write to the file and to its folder")
        }
        error => without_causes(error),
    }
}
