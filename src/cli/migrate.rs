//! `outboxd migrate`

use clap::Args;

use super::database::{self, Schema};
use super::global::Global;

/// Bring the database schema to this version and exit
///
/// Safe when several instances do it at once, and when there is nothing to do.
#[derive(Debug, Args)]
#[command(after_help = "Example: DATABASE_URL=postgres://app@localhost/app outboxd migrate")]
pub(super) struct Arguments {}

pub(super) async fn run(global: &Global, _arguments: Arguments) -> anyhow::Result<()> {
    let config = global.begin(None)?;
    let store = database::open_configured(&config, Schema::Migrate).await?;
    store.close().await;
    tracing::info!("the database schema is up to date");
    Ok(())
}
