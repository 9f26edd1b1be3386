//! The real program in a folder of its own, with an empty environment.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for what must come: long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A working folder with its settings; the database is a `SQLite` file in it.
pub struct Program {
    folder: TempDir,
}

impl Program {
    /// A folder with this `outboxd.toml`.
    pub fn with_settings(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("outboxd.toml"), settings).unwrap();
        Self { folder }
    }

    /// A folder with this `outboxd.toml` and a migrated database.
    pub fn migrated(settings: &str) -> Self {
        let program = Self::with_settings(settings);
        program.succeed(&["migrate"]);
        program
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outboxd"));
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs to the end with these variables.
    pub fn run_with_environment(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs to the end with this on standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs to the end, must exit with 0, and returns standard output.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`Program::succeed`], where standard output is one JSON document.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(arguments)).unwrap()
    }

    /// Runs to the end, must exit with 1 and print nothing, and returns what it complains of.
    pub fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{:?}", String::from_utf8_lossy(&output.stdout));
        errors
    }

    /// Writes a file into the working folder.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Starts it and leaves it running.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        let log = lines(child.stderr.take().unwrap());
        Running { child, out, log }
    }
}

/// The program while it runs; killed when the test ends.
pub struct Running {
    child: Child,
    out: Receiver<String>,
    log: Receiver<String>,
}

impl Running {
    /// The next line of standard output that holds this text.
    pub fn line_of_output(&self, text: &str) -> String {
        next_with(&self.out, text)
    }

    /// The next line of the log that holds this text.
    pub fn line_of_log(&self, text: &str) -> String {
        next_with(&self.log, text)
    }

    /// The address that it serves on, once it is ready.
    pub fn ready_address(&self) -> SocketAddr {
        let line: Value = serde_json::from_str(&self.line_of_log("\"ready\"")).unwrap();
        line["address"].as_str().unwrap().parse().unwrap()
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(mut self) -> ExitStatus {
        self.ask_to_stop();
        self.child.wait().unwrap()
    }

    /// Sends SIGTERM.
    pub fn ask_to_stop(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Waits for the end.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

fn next_with(lines: &Receiver<String>, text: &str) -> String {
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line with {text:?} came"));
        if line.contains(text) {
            return line;
        }
    }
}

/// One HTTP request: the status and the whole answer.
pub fn http(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    http_if_answered(address, method, path, body).unwrap()
}

/// As [`http`], where the program may be gone before it has answered.
pub fn http_if_answered(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n");
    write!(stream, "{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().unwrap();
    Some((status, answer))
}
