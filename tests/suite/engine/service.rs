//! The real program, serving on a database of the test's own.

use std::net::SocketAddr;

use serde_json::Value;

use super::*;
use crate::support::program::{Program, Running, http};

/// `outboxd serve`, ready, with one route for every type.
pub struct Service {
    pub address: SocketAddr,
    pub running: Running,
    _program: Program,
}

/// What it answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub body: Value,
}

impl Service {
    /// Starts it. These settings come before the route.
    pub async fn start(database: &str, receiver: &Receiver, timeout: &str, settings: &str) -> Self {
        let (url, database) = (receiver.url("/"), database.to_owned());
        let server = format!("[server]\nlisten = \"127.0.0.1:0\"\nshutdown_grace = \"1s\"\n{settings}\n");
        let route = format!("[[route]]\nname = \"all\"\ntypes = [\"*\"]\nurl = \"{url}\"\ntimeout = \"{timeout}\"\n");
        let text = format!("database_url = \"{database}\"\n{server}{route}");
        tokio::task::spawn_blocking(move || {
            let program = Program::with_settings(&text);
            let running = program.start(&["serve"]);
            let address = running.ready_address();
            Self { address, running, _program: program }
        })
        .await
        .unwrap()
    }

    /// One request and its answer.
    pub async fn call(&self, method: &str, path: &str) -> Answer {
        call(self.address, method, path).await
    }

    /// A run over everything with this much time, whose answer is awaited elsewhere.
    pub fn begin_run(&self, max_runtime_ms: u64) -> tokio::task::JoinHandle<Answer> {
        let (address, path) = (self.address, format!("/v1/process?batch_size=1000&max_runtime_ms={max_runtime_ms}"));
        tokio::spawn(async move { call(address, "POST", &path).await })
    }

    /// A run that has time enough, and its report.
    pub async fn run(&self) -> Value {
        let answer = self.begin_run(60_000).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }
}

async fn call(address: SocketAddr, method: &str, path: &str) -> Answer {
    let (method, path) = (method.to_owned(), path.to_owned());
    let (status, text) = tokio::task::spawn_blocking(move || http(address, &method, &path, "")).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    Answer { status, head: head.to_lowercase(), body: serde_json::from_str(body).unwrap_or_default() }
}
