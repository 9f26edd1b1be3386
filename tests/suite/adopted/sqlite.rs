//! Tables in a `SQLite` file: one as Prisma makes them, one as it is written by hand. The same things hold for both.

use std::str::FromStr as _;

use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, SqlitePool};

use super::Service;
use crate::support::program::{Program, http_if_answered};
use crate::support::receiver::{Receiver, Reply};

/// A table, its description, and how its application writes.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) table: &'static str,
    pub(super) settings: &'static str,
    /// `?1` is a name of the event, `?2` its type, `?3` seconds from now, `?4` its payload.
    pub(super) insert: &'static str,
    /// Name, status, attempts and whether there is an error, in the order of names.
    pub(super) standing: &'static str,
    /// Makes every claim ten minutes older.
    pub(super) age: &'static str,
}

/// Prisma: ids are texts, instants are milliseconds in columns that are declared as DATETIME.
pub(super) const PRISMA: Shape = Shape {
    table: r#"
CREATE TABLE "DomainEvent" (
    "id" TEXT NOT NULL PRIMARY KEY, "type" TEXT NOT NULL, "payload" TEXT NOT NULL, "status" TEXT NOT NULL DEFAULT 'PENDING',
    "attempts" INTEGER NOT NULL DEFAULT 0, "availableAt" DATETIME NOT NULL, "claimedAt" DATETIME,
    "createdAt" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "processedAt" DATETIME, "lastError" TEXT);
CREATE INDEX "DomainEvent_status_type_availableAt_idx" ON "DomainEvent"("status", "type", "availableAt");
"#,
    settings: r#"
[[outbox]]
name = "app"
table = '"DomainEvent"'
max_attempts = 3
lease = "5m"
instants = "milliseconds"
[outbox.columns]
id = "id"
event_type = "type"
payload = "payload"
status = "status"
attempts = "attempts"
available_at = "availableAt"
locked_at = "claimedAt"
created_at = "createdAt"
processed_at = "processedAt"
last_error = "lastError"
[outbox.status]
pending = "PENDING"
processing = "PROCESSING"
completed = "DONE"
dead_letter = "FAILED"
"#,
    insert: r#"INSERT INTO "DomainEvent" ("id", "type", "payload", "availableAt", "createdAt") VALUES
        (?1, ?2, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3 * 1000, unixepoch() * 1000)"#,
    standing: r#"SELECT group_concat("id" || '=' || "status" || "attempts" || iif("lastError" IS NULL, '', '!'), ' ')
        FROM (SELECT * FROM "DomainEvent" ORDER BY "id")"#,
    age: r#"UPDATE "DomainEvent" SET "claimedAt" = "claimedAt" - 600000"#,
};

/// By hand: numbers for ids, CURRENT_TIMESTAMP for instants, numbers for statuses, a limit and a subject of its own.
pub(super) const PLAIN: Shape = Shape {
    table: "
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, kind TEXT NOT NULL, body BLOB NOT NULL, state INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0, most INTEGER, about TEXT, due TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    locked TEXT, made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, ended TEXT, error TEXT);
CREATE INDEX outbox_due ON outbox (state, due);
",
    settings: r#"
[[outbox]]
name = "app"
table = "outbox"
max_attempts = 3
lease = "5m"
[outbox.columns]
id = "id"
event_type = "kind"
payload = "body"
status = "state"
attempts = "tries"
max_attempts = "most"
subject = "about"
available_at = "due"
locked_at = "locked"
created_at = "made"
processed_at = "ended"
last_error = "error"
[outbox.status]
pending = 0
processing = 1
completed = 2
dead_letter = 3
skipped = 4
"#,
    insert: "INSERT INTO outbox (name, kind, body, due) VALUES (?1, ?2, CAST(?4 AS BLOB), datetime('now', ?3 || ' seconds'))",
    standing:
        "SELECT group_concat(name || '=' || CASE state WHEN 0 THEN 'PENDING' WHEN 1 THEN 'PROCESSING' WHEN 2 THEN 'DONE'
        WHEN 3 THEN 'FAILED' WHEN 4 THEN 'SKIPPED' ELSE state END || tries || iif(error IS NULL, '', '!'), ' ')
        FROM (SELECT * FROM outbox ORDER BY name)",
    age: "UPDATE outbox SET locked = strftime('%Y-%m-%d %H:%M:%f', locked, '-10 minutes')",
};

const ROUTE: &str = r#"
[[route]]
name = "app"
outbox = "app"
types = ["*"]
url = "{receiver}"
timeout = "20s"
"#;

pub(super) struct World {
    shape: Shape,
    pool: SqlitePool,
    pub(super) program: Program,
    receiver: Receiver,
    _folder: tempfile::TempDir,
}

impl World {
    pub(super) async fn new(shape: Shape) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("app.db").display());
        let options = SqliteConnectOptions::from_str(&url).unwrap().create_if_missing(true);
        let pool = SqlitePool::connect_with(options.journal_mode(SqliteJournalMode::Wal)).await.unwrap();
        let receiver = Receiver::start().await;
        let route = ROUTE.replace("{receiver}", &receiver.url("/in"));
        let settings = shape.settings;
        let program = Program::with_settings(&format!(
            "database_url = \"{url}\"\n{settings}{route}\n[server]\nlisten = \"127.0.0.1:0\"\n"
        ));
        let world = Self { shape, pool, program, receiver, _folder: folder };
        world.sql(shape.table).await;
        let before = world.tables().await;
        world.program.succeed(&["migrate"]);
        assert_eq!(world.tables().await, before, "an application's table is never altered");
        world
    }

    async fn sql(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.unwrap();
    }

    /// Writes an event as the application does.
    pub(super) async fn insert(&self, name: &str, event_type: &str, seconds: i64, payload: &str) {
        let query = sqlx::query(self.shape.insert).bind(name.to_owned()).bind(event_type.to_owned());
        query.bind(seconds).bind(payload.to_owned()).execute(&self.pool).await.unwrap();
    }

    async fn ask(&self, sql: &str) -> String {
        let sql = format!("SELECT coalesce(CAST(({sql}) AS TEXT), '-')");
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.unwrap()
    }

    async fn standing(&self) -> String {
        self.ask(self.shape.standing).await
    }

    async fn tables(&self) -> String {
        self.ask("SELECT group_concat(sql, ';') FROM sqlite_schema WHERE tbl_name NOT LIKE '%outbox\\_%' ESCAPE '\\'")
            .await
    }

    fn serve(&self) -> Service {
        let running = self.program.start(&["serve"]);
        let address = running.ready_address();
        Service { running, address }
    }

    /// The id of the only dead letter.
    fn dead_letter(service: &Service) -> String {
        let page = service.call("GET", "/v1/dead-letters?outbox=app", "", 200);
        let [event] = page["data"].as_array().unwrap().as_slice() else { panic!("not one dead letter: {page}") };
        event["id"].as_str().unwrap().to_owned()
    }
}

async fn drains(shape: Shape) {
    let world = World::new(shape).await;
    for n in 0..30 {
        world.insert(&format!("e{n:02}"), ["a", "b", "c"][n % 3], 0, &format!("{{\"n\": {n}}}")).await;
    }
    world.insert("later", "a", 600, "{}").await;
    let service = world.serve();
    let report = service.process("");
    assert_eq!((&report["completed"], &report["more"]), (&json!(30), &json!(false)), "{report}");
    assert!(report["next_due_at"].is_string(), "{report}");
    let standing = world.standing().await;
    assert_eq!(standing.matches("=DONE0").count(), 30, "{standing}");
    assert!(standing.ends_with("later=PENDING0"), "{standing}");
    let received = world.receiver.received();
    let mut ids: Vec<&str> = received.iter().map(|request| request.header("webhook-id").unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((received.len(), ids.len()), (30, 30), "each once, by its own id");
    let first = received.iter().find(|request| request.body == b"{\"n\": 7}").unwrap();
    let event: Value =
        service.call("GET", &format!("/v1/events/{}?outbox=app", first.header("webhook-id").unwrap()), "", 200);
    assert_eq!((&event["status"], &event["type"]), (&json!("completed"), &json!("b")), "{event}");
    assert!(event["processed_at"].is_string() && event["created_at"].is_string(), "{event}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_is_delivered_and_what_is_not_waits() {
    drains(PRISMA).await;
    drains(PLAIN).await;
}

async fn fails(shape: Shape) {
    let world = World::new(shape).await;
    world.insert("e", "a", 0, "{}").await;
    world.receiver.then(Reply::status(500).header("retry-after", "3600"));
    let service = world.serve();
    assert_eq!(service.process("")["retried"], 1);
    assert_eq!(world.standing().await, "e=PENDING1!");
    let report = service.process("");
    assert_eq!((&report["claimed"], &report["more"]), (&json!(0), &json!(false)), "it waits: {report}");
    let service = {
        drop(service);
        world
            .sql(
                &world
                    .shape
                    .age
                    .replace("claimedAt", "availableAt")
                    .replace("locked", "due")
                    .replace("600000", "7200000")
                    .replace("-10 minutes", "-2 hours"),
            )
            .await;
        world
            .sql(if world.shape.settings.contains("tries") {
                "UPDATE outbox SET tries = 2"
            } else {
                "UPDATE \"DomainEvent\" SET attempts = 2"
            })
            .await;
        world.serve()
    };
    world.receiver.then(Reply::status(500));
    assert_eq!(service.process("")["dead_letter_ids"].as_array().unwrap().len(), 1);
    assert_eq!(world.standing().await, "e=FAILED3!");
    let id = World::dead_letter(&service);
    service.call("POST", &format!("/v1/dead-letters/{id}/requeue?outbox=app"), "", 200);
    assert_eq!(world.standing().await, "e=PENDING0!");
    let done = service.call("POST", &format!("/v1/events/{id}/process?outbox=app"), "", 200);
    assert_eq!(done["outcome"], "completed", "{done}");
    assert_eq!(world.standing().await, "e=DONE0!");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_retried_up_to_the_limit_then_requeued_and_delivered() {
    fails(PRISMA).await;
    fails(PLAIN).await;
}

async fn defers_and_skips(shape: Shape, skipped: &str) {
    let world = World::new(shape).await;
    world.insert("d", "a", 0, "{}").await;
    let service = world.serve();
    world.receiver.then(Reply::status(503).header("outbox-outcome", "defer"));
    assert_eq!(service.process("")["deferred"], 1);
    assert_eq!(world.standing().await, "d=PENDING0!");
    world.insert("s", "a", 0, "{}").await;
    world.receiver.then(Reply::status(200).header("outbox-outcome", "skip"));
    service.process("");
    assert_eq!(world.standing().await, format!("d=PENDING0! s={skipped}0!"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferral_spends_no_attempt_and_a_skip_is_what_the_table_has_for_it() {
    defers_and_skips(PRISMA, "DONE").await;
    defers_and_skips(PLAIN, "SKIPPED").await;
}

async fn survives(shape: Shape) {
    let world = World::new(shape).await;
    world.receiver.then(Reply::status(200).held());
    world.insert("e", "a", 0, "{\"n\": 1}").await;
    let killed = world.serve();
    let address = killed.address;
    let call = tokio::task::spawn_blocking(move || http_if_answered(address, "POST", "/v1/process", ""));
    world.receiver.wait_for(1).await;
    killed.running.kill();
    call.await.unwrap();
    let next = world.serve();
    assert_eq!(next.process("")["claimed"], 0, "its lease has not ended");
    assert_eq!(world.standing().await, "e=PROCESSING0");
    world.sql(shape.age).await;
    let report = next.process("");
    assert_eq!((&report["reaped"], &report["completed"]), (&json!(1), &json!(1)), "{report}");
    assert_eq!(world.standing().await, "e=DONE1!");
    let received = world.receiver.received();
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    assert_ne!(received[0].header("outbox-claim"), received[1].header("outbox-claim"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_loses_nothing() {
    survives(PRISMA).await;
    survives(PLAIN).await;
}

async fn buries(shape: Shape, poison: &str, expected: &str) {
    let world = World::new(shape).await;
    for name in ["good1", "good2", "nojson", "when", "often", "how", "what"] {
        world.insert(name, "a", 0, if name == "nojson" { "{" } else { "{}" }).await;
    }
    world.sql(poison).await;
    let service = world.serve();
    service.process("");
    let report = service.process("");
    assert_eq!(report["more"], false, "{report}");
    assert_eq!(world.standing().await, expected);
    let page = service.call("GET", "/v1/dead-letters?outbox=app&limit=100", "", 200);
    let errors: Vec<&str> =
        page["data"].as_array().unwrap().iter().map(|event| event["last_error"].as_str().unwrap()).collect();
    for column in ["payload", "availableAt", "attempts"] {
        let column = if shape.settings.contains("tries") {
            ["body", "due", "tries"]
                [["payload", "availableAt", "attempts"].iter().position(|name| *name == column).unwrap()]
        } else {
            column
        };
        assert!(errors.iter().any(|error| error.starts_with(column)), "{column}: {errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_fails_alone_names_its_column_and_its_neighbours_are_delivered() {
    buries(
        PRISMA,
        r#"UPDATE "DomainEvent" SET "availableAt" = 'soon' WHERE "id" = 'when';
           UPDATE "DomainEvent" SET "attempts" = 'many' WHERE "id" = 'often';
           UPDATE "DomainEvent" SET "status" = 'ON HOLD' WHERE "id" = 'how';
           UPDATE "DomainEvent" SET "payload" = x'ff' WHERE "id" = 'what';"#,
        "good1=DONE0 good2=DONE0 how=ON HOLD0 nojson=FAILED0! often=FAILEDmany! what=FAILED0! when=FAILED0!",
    )
    .await;
    buries(
        PLAIN,
        "UPDATE outbox SET due = 'soon' WHERE name = 'when';
         UPDATE outbox SET tries = 'many' WHERE name = 'often';
         UPDATE outbox SET state = 'ON HOLD' WHERE name = 'how';
         UPDATE outbox SET body = 7 WHERE name = 'what';",
        "good1=DONE0 good2=DONE0 how=ON HOLD0 nojson=FAILED0! often=FAILEDmany! what=FAILED0! when=FAILED0!",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_enqueued_through_outboxd_where_the_table_has_all_it_takes() {
    let world = World::new(PLAIN).await;
    let service = world.serve();
    let event =
        service.call("POST", "/v1/events?outbox=app", r#"{"type": "a", "payload": {"n": 1}, "subject": "s"}"#, 201);
    assert_eq!((&event["id"], &event["subject"]), (&json!("1"), &json!("s")), "{event}");
    assert_eq!(service.process("&subject=s")["completed"], 1);
    let world = World::new(PRISMA).await;
    let service = world.serve();
    service.call("POST", "/v1/events?outbox=app", r#"{"type": "a", "payload": {"n": 1}}"#, 201);
    assert_eq!(service.process("")["completed"], 1);
    assert_eq!(world.ask(r#"SELECT typeof("availableAt") || ' ' || (abs("processedAt" / 1000 - unixepoch()) / 60) FROM "DomainEvent""#).await, "integer 0");
}
