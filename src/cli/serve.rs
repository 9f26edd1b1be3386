//! `outboxd serve`

use clap::Args;

use super::database::Schema;
use super::global::Global;
use super::service::{self, Extras};

/// Run the service: HTTP interface, retention and, when configured, the poller
///
/// Migrates the database, then listens. The first SIGTERM or SIGINT lets running handlers finish within
/// the grace time of the settings, the second ends at once.
#[derive(Debug, Args)]
#[command(after_help = "Example: DATABASE_URL=postgres://app@localhost/app outboxd serve --config outboxd.toml")]
pub(super) struct Arguments {
    /// Address and port to listen on [default: server.listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Do not migrate: fail when the database schema is missing or older than this program
    #[arg(long)]
    no_migrate: bool,
    /// Listen on an address that others can reach although no token is configured
    #[arg(long)]
    insecure_no_auth: bool,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> anyhow::Result<()> {
    let config = global.begin(arguments.listen)?.without_auth(arguments.insecure_no_auth);
    let settings = config.service()?;
    for warning in config.warnings(&settings) {
        tracing::warn!("{warning}");
    }
    let schema = if arguments.no_migrate { Schema::Require } else { Schema::Migrate };
    service::run(settings, schema, Extras::default()).await
}
