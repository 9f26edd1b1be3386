//! What the program says: results on standard output, errors on standard error.

use std::io::{self, ErrorKind, Write as _};

use serde::Serialize;

/// Prints a result as one JSON document.
pub(super) fn json(result: &impl Serialize) -> anyhow::Result<()> {
    text(&serde_json::to_string_pretty(result)?)
}

/// Prints text and a newline. A reader that has gone away (`| head`) is no error.
pub(super) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Says why the command failed, with every cause.
pub(super) fn complain(error: &anyhow::Error) {
    // Nobody is left to be told when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "error: {error:#}");
}

/// An error without the driver's own words below it: ours name the class and hold no addresses or values.
pub(super) fn without_causes(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

/// Arguments that do not fit one another; the exit code is the parser's own.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotUnderstood(pub(super) String);
