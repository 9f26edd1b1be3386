//! `outboxd config check`

use clap::Subcommand;

use super::global::Global;
use super::output;

/// Look at the settings
#[derive(Debug, Subcommand)]
#[command(after_help = "Example: outboxd config check --config outboxd.toml")]
pub(super) enum Command {
    /// Print the effective settings with secrets masked, how long each route retries, and warnings
    ///
    /// Nothing is connected to. Exits with 1 and names every problem when the settings are not valid.
    #[command(after_help = "Example: outboxd config check --config outboxd.toml")]
    Check {
        /// Judge the settings as `serve --insecure-no-auth` would
        #[arg(long)]
        insecure_no_auth: bool,
    },
}

pub(super) fn run(global: &Global, command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Check { insecure_no_auth } => {
            let report = global.read(None)?.without_auth(*insecure_no_auth).report()?;
            output::text(report.trim_end())
        }
    }
}
