//! `outboxd openapi`

use clap::Args;

use super::output;
use crate::api;

/// Print the description of the HTTP interface as YAML
#[derive(Debug, Args)]
#[command(after_help = "Example: outboxd openapi > openapi.yaml")]
pub(super) struct Arguments {}

pub(super) fn run(_arguments: &Arguments) -> anyhow::Result<()> {
    output::text(api::openapi_yaml().trim_end())
}
