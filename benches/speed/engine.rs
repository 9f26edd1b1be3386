//! The engine as its users run it: the program itself, called over HTTP as a scheduler calls it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;

const TOKEN: &str = "a-token-of-the-benchmark";
/// Signs deliveries.
pub const SECRET: &str = "whsec_b3V0Ym94ZC1iZW5jaG1hcmstc2lnbmluZy1rZXk=";
/// The most that one call may ask for.
pub const BATCH: u64 = 10_000;
/// How long the program may take to be ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// How to run it. The poller is off: only calls set it going.
pub struct Setup {
    pub database_url: String,
    pub concurrency: usize,
    /// The `[[route]]` tables.
    pub routes: String,
    /// Whatever else is not as by default, by the names of the environment: `OUTBOXD_DATABASE__MAX_CONNECTIONS`.
    pub environment: Vec<(&'static str, String)>,
}

impl Setup {
    /// Every event is completed without any work.
    pub fn discarding(database_url: &str, concurrency: usize) -> Self {
        let routes = "[[route]]\nname = \"nothing\"\ntypes = [\"*\"]\nhandler = \"discard\"\n".to_owned();
        Self { database_url: database_url.to_owned(), concurrency, routes, environment: Vec::new() }
    }

    /// Every event is posted to this URL, signed.
    pub fn delivering(database_url: &str, concurrency: usize, url: &str) -> Self {
        let routes =
            format!("[[route]]\nname = \"receiver\"\ntypes = [\"*\"]\nurl = \"{url}\"\nsecrets = [\"{SECRET}\"]\n");
        Self { database_url: database_url.to_owned(), concurrency, routes, environment: Vec::new() }
    }

    fn file(&self) -> String {
        format!(
            "database_url = \"{}\"\n\n[server]\nlisten = \"127.0.0.1:0\"\n\n[run]\nconcurrency = {}\n\n\
             [[token]]\nname = \"bench\"\nscopes = [\"enqueue\", \"process\", \"read\"]\nvalue = \"{TOKEN}\"\n\n{}",
            self.database_url, self.concurrency, self.routes
        )
    }
}

/// The program while it runs; killed on drop.
pub struct Engine {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Engine {
    /// Starts it and waits until it is ready. The schema must be there.
    pub async fn start(setup: Setup) -> Self {
        let starting = tokio::task::spawn_blocking(move || Self::launch(&setup));
        let engine = starting.await.expect("the program starts");
        // What connects and prepares at first use does so before anything is measured.
        engine.client().await.post("/v1/process", b"{\"batch_size\": 1, \"types\": [\"nothing.at.all\"]}").await.json();
        engine
    }

    fn launch(setup: &Setup) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("outboxd.toml"), setup.file()).expect("the settings are written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_outboxd"))
            .arg("serve")
            .current_dir(folder.path())
            .env_clear()
            .envs(setup.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let (lines, received) = mpsc::channel();
        // Reads on to the end, or the program would wait for room in its pipe.
        std::thread::spawn(move || log.lines().map_while(Result::ok).for_each(|line| drop(lines.send(line))));
        let address = ready_address(&received);
        Self { child, address, _folder: folder }
    }

    /// One for each concurrency, that complete events without any work.
    pub async fn start_discarding<const N: usize>(url: &str, concurrencies: [usize; N]) -> Vec<(usize, Self)> {
        let mut engines = Vec::new();
        for concurrency in concurrencies {
            engines.push((concurrency, Self::start(Setup::discarding(url, concurrency)).await));
        }
        engines
    }

    /// A connection of its own.
    pub async fn client(&self) -> Client {
        Client::connect(self.address, TOKEN).await
    }

    /// The system's number of the process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Calls until so many events are completed; every one of them must be there.
    pub async fn drain(&self, events: u64) -> Duration {
        let mut client = self.client().await;
        let began = Instant::now();
        let mut left = events;
        while left > 0 {
            let report = process(&mut client, left.min(BATCH)).await;
            assert!(report.completed > 0, "the backlog ended early, {left} are missing");
            left -= report.completed;
        }
        began.elapsed()
    }

    /// Calls until nothing more is to be had, and says how many events were completed.
    pub async fn drain_all(&self) -> u64 {
        let mut client = self.client().await;
        let mut completed = 0;
        loop {
            let report = process(&mut client, BATCH).await;
            completed += report.completed;
            if !report.more {
                return completed;
            }
        }
    }

    /// The greatest memory that the process has held so far, in MiB.
    pub fn peak_mebibytes(&self) -> f64 {
        let path = format!("/proc/{}/status", self.process_id());
        let status = std::fs::read_to_string(path).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
        let kibibytes: f64 = line.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number of kB");
        kibibytes / 1_024.0
    }
}

/// The parts of a run's report that matter here.
pub struct RunReport {
    pub completed: u64,
    pub more: bool,
}

/// One call of a scheduler. Every event that was claimed must have been completed.
pub async fn process(client: &mut Client, batch: u64) -> RunReport {
    let body = json!({ "batch_size": batch, "max_runtime_ms": 300_000 }).to_string();
    let report = client.post("/v1/process", body.as_bytes()).await.json();
    assert_eq!(report["claimed"], report["completed"], "{report}");
    RunReport {
        completed: report["completed"].as_u64().expect("a count"),
        more: report["more"].as_bool().expect("whether there is more"),
    }
}

fn ready_address(log: &mpsc::Receiver<String>) -> SocketAddr {
    let mut said = String::new();
    while let Ok(line) = log.recv_timeout(PATIENCE) {
        let entry: Value = serde_json::from_str(&line).unwrap_or_default();
        let is_ready = line.contains("\"ready\"");
        if let Some(address) = entry["address"].as_str().filter(|_| is_ready) {
            return address.parse().expect("an address");
        }
        said.push_str(&line);
        said.push('\n');
    }
    panic!("the program did not become ready:\n{said}");
}
