//! What every scenario is given: a server, a report, and how much to do.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::database::{self, Outbox};
use crate::plot::Plot;
use crate::postgres::Server;
use crate::report::Report;

/// The benchmark while it runs.
pub struct Bench {
    pub smoke: bool,
    /// Whether other programs are measured too.
    pub peers: bool,
    pub report: Report,
    plot: Option<PathBuf>,
    server: Server,
}

impl Bench {
    /// Starts a throwaway Postgres that loses nothing when the machine stops.
    pub async fn start(arguments: &Arguments) -> Self {
        let mut server = Server::start().await;
        database::make_durable(&mut server).await;
        if let Some(folder) = &arguments.plot {
            std::fs::create_dir_all(folder).expect("the folder for plots is made");
        }
        let plot = arguments.plot.clone();
        Self { smoke: arguments.smoke, peers: arguments.peers, report: Report::default(), plot, server }
    }

    /// How much to do: in full, or only so that it is seen to run.
    pub fn size<T>(&self, full: T, smoke: T) -> T {
        if self.smoke { smoke } else { full }
    }

    /// Rounds of each measurement. Sides take turns within a round, so that a noisy moment does not meet one alone.
    pub fn rounds(&self) -> usize {
        self.size(3, 1)
    }

    /// Says on standard error where a round is.
    pub fn say_round(&self, round: usize) {
        eprintln!(" round {} of {}", round + 1, self.rounds());
    }

    /// The URL of a database of the server, for making others.
    pub fn admin(&self) -> &str {
        self.server.url()
    }

    /// A new outbox with nothing in it.
    pub async fn outbox(&self) -> Outbox {
        Outbox::create(self.server.url()).await
    }

    /// Draws, if that was asked for.
    pub fn draw(&self, file: &str, plot: &Plot) {
        if let Some(folder) = &self.plot {
            let path = folder.join(file);
            std::fs::write(&path, plot.svg()).expect("the plot is written");
            println!("drawn: {}", path.display());
        }
    }

    /// What it is measured on.
    pub async fn machine(&self) -> Value {
        let mut connection = database::open(self.server.url()).await;
        let mut setting = async |name: &str| database::ask(&mut connection, format!("SHOW {name}")).await;
        json!({
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "processor": processor(),
            "postgres": setting("server_version").await,
            "fsync": setting("fsync").await,
            "synchronous_commit": setting("synchronous_commit").await,
            "shared_buffers": setting("shared_buffers").await,
            "max_wal_size": setting("max_wal_size").await,
            "rounds": self.rounds(),
            "smoke": self.smoke,
        })
    }
}

fn processor() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = known.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned())
}

/// Events in a second.
pub fn rate(events: u64, took: Duration) -> f64 {
    count(events) / took.as_secs_f64()
}

/// A count as a figure.
#[allow(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
pub fn count(count: u64) -> f64 {
    count as f64
}

/// Milliseconds as a figure.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
