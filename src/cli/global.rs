//! What every command takes: where the settings come from.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, Environment, Sources};
use crate::telemetry;

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(super) struct Global {
    /// Settings file [default: outboxd.toml in the working folder, if there is one]
    #[arg(long, global = true, value_name = "FILE", display_order = 900)]
    pub(super) config: Option<PathBuf>,
    /// The database's URL.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        display_order = 901,
        help = "Database: postgres://… or sqlite://file. Give passwords by DATABASE_URL or DATABASE_URL_FILE instead"
    )]
    pub(super) database_url: Option<String>,
}

impl Global {
    /// Reads the settings; `listen` is the flag of that name.
    pub(super) fn read(&self, listen: Option<String>) -> anyhow::Result<Config> {
        let sources = Sources {
            file: self.config.clone(),
            working_folder: PathBuf::from("."),
            environment: Environment::of_process(),
            database_url: self.database_url.clone(),
            listen,
        };
        Ok(Config::read(&sources)?)
    }

    /// Reads the settings and begins the log as they say.
    pub(super) fn begin(&self, listen: Option<String>) -> anyhow::Result<Config> {
        let config = self.read(listen)?;
        telemetry::init(&config.log())?;
        Ok(config)
    }
}
