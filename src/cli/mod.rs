//! The command line: one file per command, each a few steps over the library.
//!
//! Results are JSON on standard output, the log and errors go to standard error. The exit code is 0 when the command did
//! what it was asked to, 1 when it could not, 2 when it was not understood.

mod asking;
mod bulk;
mod config_check;
mod database;
mod dead_letters;
mod dev;
mod doctor;
mod enqueue;
mod events;
mod export;
mod global;
mod inside;
mod migrate;
mod openapi;
mod outbox;
mod outboxes;
mod output;
mod process;
mod receiver;
mod remote;
mod serve;
mod service;
mod shown;
mod signals;
mod stats;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use global::Global;

/// How long threads that still block may hold up the program's end.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The exit code of the parser.
const NOT_UNDERSTOOD: u8 = 2;

/// A transactional outbox as a service.
#[derive(Debug, Parser)]
#[command(
    name = "outboxd",
    version,
    about = "Delivers the events that your application writes in its own database transactions",
    after_help = "Example: outboxd dev   starts everything on this machine and says what to try next"
)]
struct Arguments {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Arguments),
    Serve(serve::Arguments),
    Migrate(migrate::Arguments),
    Process(process::Arguments),
    Enqueue(enqueue::Arguments),
    #[command(subcommand)]
    Events(events::Command),
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    Stats(stats::Arguments),
    Openapi(openapi::Arguments),
    #[command(subcommand)]
    Outbox(outbox::Command),
    Doctor(doctor::Arguments),
    #[command(subcommand)]
    Config(config_check::Command),
}

/// Reads the command line, does what it says and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // What only several arguments together tell is refused as the parser refuses one.
        Err(error) if error.is::<output::NotUnderstood>() => {
            output::complain(&error);
            ExitCode::from(NOT_UNDERSTOOD)
        }
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(dispatch(arguments));
    runtime.shutdown_timeout(LAST_WAIT);
    result
}

async fn dispatch(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { global, command } = arguments;
    match command {
        Command::Dev(arguments) => dev::run(&global, arguments).await,
        Command::Serve(arguments) => serve::run(&global, arguments).await,
        Command::Migrate(arguments) => migrate::run(&global, arguments).await,
        Command::Process(arguments) => process::run(&global, arguments).await,
        Command::Enqueue(arguments) => enqueue::run(&global, arguments).await,
        Command::Events(command) => events::run(&global, command).await,
        Command::DeadLetters(command) => dead_letters::run(&global, command).await,
        Command::Stats(arguments) => stats::run(&global, arguments).await,
        Command::Openapi(arguments) => openapi::run(&arguments),
        Command::Outbox(command) => outbox::run(&global, command).await,
        Command::Doctor(arguments) => doctor::run(&global, arguments).await,
        Command::Config(command) => config_check::run(&global, &command),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_explains_itself_with_an_example() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{} has no example", command.get_name());
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }
}
