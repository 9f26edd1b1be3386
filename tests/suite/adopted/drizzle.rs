//! A TypeScript backend with Drizzle: instants without a zone, written in UTC by the application's clock.

use serde_json::json;

use super::*;
use crate::support::receiver::Reply;

pub const TABLES: &str = "
CREATE TABLE outbox_event (
    id text PRIMARY KEY, event_type text NOT NULL, payload json NOT NULL, status text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0, max_attempts integer NOT NULL DEFAULT 10, available_at timestamp NOT NULL,
    locked_at timestamp, created_at timestamp NOT NULL, processed_at timestamp, last_error text);
CREATE INDEX ON outbox_event (status, available_at);
CREATE INDEX ON outbox_event (locked_at);
CREATE INDEX ON outbox_event (event_type, created_at);
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone TO ''America/New_York''', current_database()); END $$;
";

pub const SETTINGS: &str = r#"
[[outbox]]
name = "app"
table = "outbox_event"
lease = "2m"
[outbox.columns]
id = "id"
event_type = "event_type"
payload = "payload"
status = "status"
attempts = "attempts"
max_attempts = "max_attempts"
available_at = "available_at"
locked_at = "locked_at"
created_at = "created_at"
processed_at = "processed_at"
last_error = "last_error"
[outbox.status]
pending = "pending"
processing = "processing"
completed = "completed"
dead_letter = "dead_letter"
[[route]]
name = "app"
outbox = "app"
types = ["*"]
url = "{receiver}"
[[route]]
name = "own"
types = ["*"]
url = "{receiver}"
"#;

pub const UTC: &str = "(now() AT TIME ZONE 'UTC')";

#[tokio::test(flavor = "multi_thread")]
async fn instants_without_a_zone_are_utc_whatever_the_sessions_zone() {
    let world = World::new(TABLES, SETTINGS).await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, available_at, created_at) VALUES
             ('due', 'a', '{{\"b\": 1, \"a\":2}}', {UTC}, {UTC}),
             ('later', 'a', '{{}}', {UTC} + interval '1 minute', {UTC})"
        ))
        .await;
    let service = world.serve();
    let report = service.process("");
    assert_eq!((&report["completed"], &report["more"]), (&json!(1), &json!(false)), "{report}");
    assert!(report["next_due_at"].is_string(), "{report}");
    assert_eq!(world.receiver.received()[0].body, br#"{"b": 1, "a":2}"#, "a json column keeps its bytes");
    let settled =
        format!("SELECT abs(extract(epoch FROM processed_at - {UTC})) < 60 FROM outbox_event WHERE id = 'due'");
    assert_eq!(world.ask(&settled).await, "true");
    let event = service.call("GET", "/v1/events/due?outbox=app", "", 200);
    let at: String = event["processed_at"].as_str().unwrap().to_owned();
    assert_eq!(world.ask(&format!("SELECT abs(extract(epoch FROM '{at}'::timestamptz - now())) < 60")).await, "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_outbox_and_the_applications_own_are_served_by_one_call() {
    let world = World::new(TABLES, SETTINGS).await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, available_at, created_at)
             SELECT 'e' || n, 'a', '{{}}', {UTC}, {UTC} FROM generate_series(1, 30) AS n"
        ))
        .await;
    world.sql("SELECT outbox.enqueue('own', '{}'::json) FROM generate_series(1, 30)").await;
    let service = world.serve();
    let report = service.call("POST", "/v1/process?batch_size=40&max_runtime_ms=60000", "", 200);
    assert_eq!((&report["claimed"], &report["stop_reason"]), (&json!(40), &json!("batch_size")), "{report}");
    assert_eq!(report["more"], true, "{report}");
    let report = service.process("");
    assert_eq!((&report["claimed"], &report["more"]), (&json!(20), &json!(false)), "{report}");
    assert_eq!(world.ask("SELECT count(*) FROM outbox_event WHERE status = 'completed'").await, "30");
    assert_eq!(world.ask("SELECT count(*) FROM outbox.event WHERE status = 'completed'").await, "30");
    let stored = service.call("GET", "/v1/runs", "", 200);
    assert_eq!(stored["data"].as_array().unwrap().len(), 2, "one record for one call: {stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_fails_alone_and_its_neighbours_are_delivered() {
    let world = World::new(
        &TABLES.replace("event_type text NOT NULL", "event_type text").replace("payload json NOT NULL", "payload text"),
        SETTINGS,
    )
    .await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, status, available_at, created_at) VALUES
             ('good', 'a', '{{}}', 'pending', {UTC}, {UTC}),
             ('nothing', 'a', NULL, 'pending', {UTC}, {UTC}),
             ('no json', 'a', '{{', 'pending', {UTC}, {UTC}),
             ('no type', NULL, '{{}}', 'pending', {UTC}, {UTC}),
             ('strange', 'a', '{{}}', 'on hold', {UTC}, {UTC})"
        ))
        .await;
    let service = world.serve();
    service.process("");
    let standing =
        "SELECT string_agg(id || '=' || status || (last_error IS NOT NULL), ' ' ORDER BY id) FROM outbox_event";
    assert_eq!(
        world.ask(standing).await,
        "good=completedfalse no json=dead_lettertrue no type=dead_lettertrue nothing=dead_lettertrue strange=on holdfalse"
    );
    assert_eq!(service.call("GET", "/v1/events/strange?outbox=app", "", 200)["status"], "unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_own_limit_counts() {
    let world = World::new(TABLES, SETTINGS).await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, max_attempts, available_at, created_at)
             VALUES ('e', 'a', '{{}}', 1, {UTC}, {UTC})"
        ))
        .await;
    world.receiver.then(Reply::status(500));
    let report = world.serve().process("");
    assert_eq!(report["dead_letter_ids"], json!(["e"]), "{report}");
    assert_eq!(world.ask("SELECT status || attempts FROM outbox_event").await, "dead_letter1");
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_found_by_the_index_that_is_advised_as_well_as_without_it() {
    let world = World::new(TABLES, SETTINGS).await;
    world.sql("CREATE INDEX ON outbox_event (event_type, available_at, id) WHERE status = 'pending'").await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, available_at, created_at)
             SELECT 'e' || n, 'type ' || n % 40, '{{}}', {UTC}, {UTC} FROM generate_series(1, 200) AS n"
        ))
        .await;
    let report = world.serve().process("&outbox=app");
    assert_eq!((&report["completed"], &report["more"]), (&json!(200), &json!(false)), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn instants_without_end_and_counts_at_their_end_stop_nobody() {
    let world = World::new(&TABLES.replace("event_type text NOT NULL", "event_type text"), SETTINGS).await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, status, attempts, available_at, locked_at, created_at) VALUES
             ('never', 'a', '{{}}', 'pending', 0, 'infinity', NULL, {UTC}),
             ('always', 'a', '{{}}', 'pending', 0, '-infinity', NULL, '-infinity'),
             ('spent', 'a', '{{}}', 'processing', 2147483647, {UTC}, {UTC} - interval '1 hour', {UTC}),
             ('untyped', NULL, '{{}}', 'processing', 0, {UTC}, {UTC} - interval '1 hour', {UTC}),
             ('good', 'a', '{{}}', 'pending', 0, {UTC}, NULL, {UTC})"
        ))
        .await;
    let service = world.serve();
    let report = service.process("&outbox=app");
    assert_eq!((&report["completed"], &report["reaped"]), (&json!(2), &json!(1)), "{report}");
    let standing = "SELECT string_agg(id || '=' || status, ' ' ORDER BY id) FROM outbox_event";
    let ended = "always=completed good=completed never=pending spent=dead_letter untyped=dead_letter";
    assert_eq!(world.ask(standing).await, ended);
    assert_eq!(service.call("GET", "/v1/events/never?outbox=app", "", 200)["status"], "pending");
    assert_eq!(service.call("GET", "/v1/dead-letters?outbox=app", "", 200)["data"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_cannot_be_written_out_fails_its_own_event() {
    let world = World::new(&TABLES.replace("payload json NOT NULL", "payload jsonb NOT NULL"), SETTINGS).await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, available_at, created_at) VALUES
             ('good', 'a', '{{\"n\": 1}}', {UTC}, {UTC});
             INSERT INTO outbox_event (id, event_type, payload, available_at, created_at)
             SELECT 'bomb', 'a', jsonb_agg(('1e' || 130000 + n % 2)::numeric), {UTC}, {UTC} FROM generate_series(1, 12000) AS n"
        ))
        .await;
    let service = world.serve();
    let report = service.process("&outbox=app");
    assert_eq!((&report["completed"], &report["dead_letter_ids"]), (&json!(1), &json!(["bomb"])), "{report}");
    let page = service.call("GET", "/v1/dead-letters?outbox=app", "", 200);
    assert_eq!(page["data"][0]["id"], "bomb", "{page}");
    assert_eq!(service.call("GET", "/v1/events/bomb?outbox=app", "", 200)["status"], "dead_letter");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_alone_can_judge_is_judged_at_the_start() {
    let world =
        World::new(TABLES, &SETTINGS.replace("lease = \"2m\"", "lease = \"2m\"\nfilter = \"tennant = 7\"")).await;
    assert!(world.program.fail(&["serve"]).contains("tennant"));
    let world = World::new(&TABLES.replace("id text PRIMARY KEY", "id text"), SETTINGS).await;
    assert!(world.program.fail(&["serve"]).contains("unique"));
    let world = World::new(TABLES, &SETTINGS.replace("lease = \"2m\"", "lease = \"2m\"\ninstants = \"text\"")).await;
    assert!(world.program.fail(&["serve"]).contains("instants is for SQLite"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_gone_does_not_hide_the_other_outboxes() {
    let world = World::new(TABLES, SETTINGS).await;
    world.sql("INSERT INTO outbox.event (event_type, payload) VALUES ('own', '1')").await;
    let service = world.serve();
    let stats = service.call("GET", "/v1/stats", "", 200);
    assert_eq!((&stats["outboxes"], &stats["uncounted"]), (&json!(["default", "app"]), &json!([])), "{stats}");
    world.sql("ALTER TABLE outbox_event RENAME TO gone").await;
    let gone = loop {
        // Counts are some seconds old.
        let stats = service.call("GET", "/v1/stats", "", 200);
        if stats["uncounted"] == json!(["app"]) {
            break stats;
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    };
    assert_eq!(gone["lanes"][0]["type"], "own", "{gone}");
    let refused = service.call("GET", "/v1/stats?outbox=app", "", 503);
    assert_eq!(refused["code"], "database-unavailable", "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_how_long_the_oldest_due_event_has_waited() {
    let world = World::new(TABLES, SETTINGS).await;
    let insert = |id: &str, ago: &str| {
        format!(
            "INSERT INTO outbox_event (id, event_type, payload, available_at, created_at)
             VALUES ('{id}', 'a', '1', {UTC} - interval '{ago}', {UTC})"
        )
    };
    world.sql(&insert("fresh", "2 seconds")).await;
    let told = world.program.succeed(&["doctor"]);
    assert!(told.contains("outbox \"app\": the oldest due event waits for") && !told.contains("NOTHING"), "{told}");
    world.sql(&insert("old", "2 hours")).await;
    let told = world.program.run(&["doctor"]);
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(!told.status.success() && text.contains("waits for 2h") && text.contains("NOTHING HAS CALLED"), "{text}");
}
