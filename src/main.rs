//! The program: an exit code around [`outboxd::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    outboxd::cli::main()
}
