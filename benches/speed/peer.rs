//! Other programs that do comparable work. Each has a small program of ours in `benches/peers`, which adds jobs and
//! drains them; what it needs comes from its registry by the ordinary package manager, into the target folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::database::Outbox;

/// A program that can be run.
pub struct Peer {
    pub name: &'static str,
    program: PathBuf,
    first_argument: Option<PathBuf>,
}

impl Peer {
    /// Installs all of them.
    pub fn install_all() -> [Self; 2] {
        [Self::install_graphile_worker_of_node(), Self::install_graphile_worker_of_rust()]
    }

    fn install_graphile_worker_of_node() -> Self {
        let folder = cache("graphile-worker");
        std::fs::create_dir_all(&folder).expect("a folder below the target folder");
        for file in ["package.json", "package-lock.json", "main.mjs"] {
            std::fs::copy(source("graphile-worker").join(file), folder.join(file)).expect("our file is copied");
        }
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
        succeed(Command::new("npm").args(arguments).current_dir(&folder));
        Self { name: "graphile-worker (Node)", program: "node".into(), first_argument: Some(folder.join("main.mjs")) }
    }

    fn install_graphile_worker_of_rust() -> Self {
        let target = cache("graphile_worker");
        let manifest = source("graphile_worker").join("Cargo.toml");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
        succeed(build.arg("--target-dir").arg(&target));
        let program = target.join("release/outboxd-bench-graphile-worker");
        Self { name: "graphile_worker (Rust)", program, first_argument: None }
    }

    /// Adds so many jobs to a database that has none, and leaves it as a quiet hour would.
    pub async fn fill(&self, outbox: &Outbox, jobs: u64) {
        let filled = self.run("fill", outbox, jobs).await;
        assert_eq!(filled["filled"], jobs, "{}: {filled}", self.name);
        for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
            outbox.run(statement).await;
        }
    }

    /// Drains them all and says how long it took; starting and ending the program is not counted.
    pub async fn drain(&self, outbox: &Outbox, jobs: u64) -> Duration {
        let drained = self.run("drain", outbox, jobs).await;
        assert_eq!(drained["drained"], jobs, "{}: {drained}", self.name);
        let left = outbox.ask("SELECT count(*)::text FROM graphile_worker._private_jobs").await;
        assert_eq!(left, "0", "{}: jobs are left", self.name);
        Duration::from_secs_f64(drained["seconds"].as_f64().expect("seconds"))
    }

    async fn run(&self, task: &str, outbox: &Outbox, jobs: u64) -> Value {
        let mut command = Command::new(&self.program);
        command.args(&self.first_argument).args([task, &outbox.url, &jobs.to_string()]).stderr(Stdio::inherit());
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("the peer is waited for");
        let output = output.unwrap_or_else(|error| panic!("{} does not start: {error}", self.name));
        assert!(output.status.success(), "{}: {task} failed: {}", self.name, output.status);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{}: {task}: {error}", self.name))
    }
}

fn source(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(peer)
}

fn cache(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers").join(peer)
}

/// Runs a step of an installation and says what it needs when it fails.
fn succeed(command: &mut Command) {
    eprintln!("  {command:?}");
    let status = command.stdout(Stdio::null()).status();
    let is_done = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(is_done, "--peers needs node, npm, cargo and their registries; this failed with {status:?}: {command:?}");
}
