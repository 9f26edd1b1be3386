//! A table that resembles none that was looked at while this was written.

use serde_json::json;

use super::*;

const TABLES: &str = r#"
CREATE SCHEMA "Odd Schema";
CREATE TABLE "Odd Schema"."the ""queue""" (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic varchar(80) NOT NULL, body bytea,
    state smallint NOT NULL DEFAULT 0, tries smallint, run_at timestamptz(0) NOT NULL DEFAULT now(),
    taken_at timestamptz(0), made_at timestamptz NOT NULL DEFAULT now(), tenant integer NOT NULL DEFAULT 7, version bigint NOT NULL DEFAULT 0);
"#;

const SETTINGS: &str = r#"
default_outbox = false
[[outbox]]
name = "odd"
table = '"Odd Schema"."the ""queue"""'
lease = "2m"
max_attempts = 2
filter = "tenant = 7"
[outbox.columns]
id = "seq"
event_type = "topic"
payload = "body"
status = "state"
attempts = "tries"
available_at = "run_at"
locked_at = "taken_at"
created_at = "made_at"
claim_no = "version"
[outbox.status]
pending = "0"
processing = "1"
completed = "2"
dead_letter = "3"
[[route]]
name = "odd"
outbox = "odd"
types = ["*"]
url = "{receiver}"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn numbers_for_statuses_and_ids_bytes_for_payloads_and_a_filter() {
    let world = World::new(TABLES, SETTINGS).await;
    let table = r#""Odd Schema"."the ""queue""""#;
    world
        .sql(&format!(
            r#"INSERT INTO {table} (topic, body, tenant) VALUES ('a', '{{"n":1}}', 7), ('b', '{{}}', 8), ('a', '\xff', 7)"#
        ))
        .await;
    let service = world.serve();
    let report = service.process("");
    assert_eq!((&report["completed"], &report["dead_lettered"]), (&json!(1), &json!(1)), "{report}");
    assert_eq!(report["dead_letter_ids"], json!(["3"]), "{report}");
    let standing = format!("SELECT string_agg(seq || ':' || state || ':' || version, ' ' ORDER BY seq) FROM {table}");
    assert_eq!(world.ask(&standing).await, "1:2:1 2:0:0 3:3:1");
    let received = world.receiver.received();
    assert_eq!((received.len(), received[0].body.as_slice()), (1, br#"{"n":1}"#.as_slice()));
    assert_eq!((received[0].header("webhook-id"), received[0].header("outbox-claim")), (Some("1"), Some("1")));
    let event = service.call("GET", "/v1/events/1?outbox=odd", "", 200);
    assert_eq!((&event["id"], &event["type"]), (&json!("1"), &json!("a")), "{event}");
    service.call("GET", "/v1/events/no-number?outbox=odd", "", 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_that_does_not_fit_ends_the_start_and_names_what_would_be_valid() {
    let world = World::new(TABLES, &SETTINGS.replace("status = \"state\"", "status = \"condition\"")).await;
    let said = world.program.fail(&["serve"]);
    for word in ["odd", "condition", "state"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
