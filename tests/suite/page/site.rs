//! The real program with its page: settings, a scripted receiver, and a database file that a test may change by hand.

use std::net::SocketAddr;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, SqliteConnection};
use tempfile::TempDir;

use crate::support::program::{Program, Running, http};
use crate::support::receiver::{Receiver, Reply};

/// A token for each way to look at the page.
pub const TOKENS: &str = r#"
[[token]]
name = "night-watch"
scopes = ["read", "operate", "payload", "process", "enqueue"]
value = "night-watch-token"

[[token]]
name = "reader"
scopes = ["read"]
value = "reader-token"

[[token]]
name = "scheduler"
scopes = ["process"]
value = "scheduler-token"
"#;

/// `outboxd serve` with one route to a receiver, over a database file unless it is told otherwise.
pub struct Site {
    pub receiver: Receiver,
    running: Option<Running>,
    program: Program,
    address: SocketAddr,
    folder: TempDir,
}

impl Site {
    /// Starts it, without tokens.
    pub async fn start() -> Self {
        Self::with_settings("").await
    }

    /// Starts it with these settings besides.
    pub async fn with_settings(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", folder.path().join("outboxd.db").display());
        Self::of(folder, &database, settings).await
    }

    /// Starts it over a database file that holds these tables already.
    pub async fn beside(tables: &str, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("outboxd.db");
        let mut database = SqliteConnectOptions::new().filename(&file).create_if_missing(true).connect().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(tables.to_owned())).execute(&mut database).await.unwrap();
        Self::of(folder, &format!("sqlite://{}", file.display()), settings).await
    }

    /// Starts it over this database.
    pub async fn over(database: &str) -> Self {
        Self::of(tempfile::tempdir().unwrap(), database, "").await
    }

    async fn of(folder: TempDir, database: &str, settings: &str) -> Self {
        let receiver = Receiver::start().await;
        // A port of its own, so that the page finds the program again after it has been away.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "database_url = \"{database}\"\n[server]\nlisten = \"127.0.0.1:{port}\"\n{settings}\n\
             [[route]]\nname = \"all\"\ntypes = [\"invoice.*\", \"order.*\"]\nurl = \"{}\"\n",
            receiver.url("/")
        );
        let program = Program::with_settings(&text);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut site = Self { receiver, running: None, program, address, folder };
        site.begin();
        site
    }

    /// The same database, now behind tokens.
    pub async fn behind_tokens(self) -> Self {
        let database = format!("sqlite://{}", self.folder.path().join("outboxd.db").display());
        drop(self.running);
        Self::of(self.folder, &database, TOKENS).await
    }

    /// Starts the program, again when it was stopped.
    pub fn begin(&mut self) {
        let running = self.program.start(&["serve"]);
        assert_eq!(tokio::task::block_in_place(|| running.ready_address()), self.address);
        self.running = Some(running);
    }

    /// Takes the program away without a word.
    pub fn stop(&mut self) {
        self.running.take().unwrap().kill();
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// One request and its answer's body.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = tokio::task::block_in_place(|| http(self.address, method, path, &text));
        assert!((200..300).contains(&status), "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default()
    }

    /// The answer's head in lower case, whatever its status.
    pub fn head(&self, path: &str) -> String {
        let (_, answer) = tokio::task::block_in_place(|| http(self.address, "GET", path, ""));
        answer.split_once("\r\n\r\n").unwrap().0.to_lowercase()
    }

    /// Enqueues an event with a limit of one attempt and returns its id.
    pub fn enqueue(&self, event_type: &str, subject: &str, payload: &Value) -> String {
        let event = json!({"type": event_type, "subject": subject, "payload": payload, "max_attempts": 1});
        self.call("POST", "/v1/events", &event)["id"].as_str().unwrap().to_owned()
    }

    /// An event that its receiver has refused with this answer, and so a dead letter.
    pub fn dead_letter(&self, event_type: &str, subject: &str, answer: &str) -> String {
        let id = self.enqueue(event_type, subject, &json!({"amount": 4200}));
        self.receiver.then(Reply::status(422).body(answer));
        let outcome = self.call("POST", &format!("/v1/events/{id}/process"), &Value::Null);
        assert_eq!(outcome["outcome"], "dead_letter", "{outcome}");
        id
    }

    /// One run, awaited.
    pub fn run(&self) -> Value {
        self.call("POST", "/v1/process", &Value::Null)
    }

    /// Changes the database behind the program's back.
    pub async fn sql(&self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut self.database().await).await.unwrap();
    }

    /// The database itself.
    pub async fn database(&self) -> SqliteConnection {
        let file = self.folder.path().join("outboxd.db");
        SqliteConnectOptions::new()
            .filename(file)
            .busy_timeout(std::time::Duration::from_secs(20))
            .connect()
            .await
            .unwrap()
    }
}
