//! SIGTERM and SIGINT: the first asks to stop, the second does not ask.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the program.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on signals come here instead of ending the process.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next signal's name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Ends the program at once: whoever signals twice does not want to wait. Leases expire by themselves.
#[allow(clippy::exit, reason = "running handlers must not be waited for")]
pub(super) fn exit_now(signal: &'static str) -> ! {
    tracing::warn!(
        signal,
        "stopped by a second signal: events in handlers' hands are taken back when their leases expire"
    );
    std::process::exit(1)
}
