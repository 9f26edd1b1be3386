//! How fast outboxd is, beside what its database can do in the same run.
//!
//! `cargo bench --bench speed` starts a throwaway Postgres with fsync on, runs every scenario and prints its figures, and
//! at the end all goals with what was measured. `-- --help` lists the options and the scenarios. Figures of different
//! runs do not compare: machines differ and are shared. Each ratio is of one run, its sides taking turns.
//!
//! The engine is the program itself, called over HTTP; load, receivers and yardsticks live in this process. A scenario
//! is one file in `scenarios` and one line in its list.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark fails by panicking and owns its tasks"
)]
#![allow(clippy::wildcard_imports, reason = "in the module that it shares with the tests")]

mod arguments;
mod bench;
mod client;
mod cost;
mod database;
mod engine;
mod peer;
mod plot;
#[path = "../../tests/suite/support/postgres.rs"]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
mod postgres;
mod raw;
mod receiver;
mod report;
mod scenarios;
mod table;

use std::process::ExitCode;
use std::time::Instant;

use arguments::Arguments;
use bench::Bench;

fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run(&arguments));
    ExitCode::SUCCESS
}

async fn run(arguments: &Arguments) {
    let began = Instant::now();
    let mut bench = Bench::start(arguments).await;
    let chosen = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    for scenario in scenarios::ALL.iter().filter(|scenario| chosen(scenario.name)) {
        eprintln!("{}: {}", scenario.name, scenario.about);
        bench.report.begin(scenario.name, scenario.about);
        let since = Instant::now();
        (scenario.run)(&mut bench).await;
        eprintln!("  {} took {:.1} s", scenario.name, since.elapsed().as_secs_f64());
    }
    let machine = bench.machine().await;
    table::print(&bench.report, bench.smoke);
    println!("\n  {machine}\n  {} s altogether", began.elapsed().as_secs());
    if let Some(path) = &arguments.json {
        std::fs::write(path, bench.report.json(&machine)).expect("the JSON file is written");
        println!("figures written to {}", path.display());
    }
}
