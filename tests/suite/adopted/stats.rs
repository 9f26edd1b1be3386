//! What stands in the lanes of a table that was there before: the same figures by index and by one pass, and what cannot be
//! exact is said.

use serde_json::json;

use super::*;

const TABLE: &str = "
CREATE TABLE job (
    key bigserial PRIMARY KEY, kind text, payload json NOT NULL DEFAULT '{}', state text NOT NULL DEFAULT 'PENDING',
    tries integer NOT NULL DEFAULT 0, due timestamp NOT NULL, taken timestamp, made timestamp NOT NULL DEFAULT now(),
    ended timestamp, error text);
";

const SETTINGS: &str = r#"
[[outbox]]
name = "jobs"
table = "job"
lease = "2m"
filter = "payload ->> 'tenant' IS DISTINCT FROM '7'"
[outbox.columns]
id = "key"
event_type = "kind"
payload = "payload"
status = "state"
attempts = "tries"
available_at = "due"
locked_at = "taken"
created_at = "made"
processed_at = "ended"
last_error = "error"
[outbox.status]
pending = "PENDING"
processing = "TAKEN"
completed = "DONE"
dead_letter = "FAILED"
[[route]]
name = "jobs"
outbox = "jobs"
types = ["a"]
url = "{receiver}"
"#;

const ROWS: &str = "
INSERT INTO job (kind, state, due, taken, payload) VALUES
    ('a', 'PENDING', (now() - interval '1 hour') AT TIME ZONE 'UTC', NULL, '{}'),
    ('a', 'PENDING', (now() - interval '2 hours') AT TIME ZONE 'UTC', NULL, '{}'),
    ('a', 'TAKEN', (now() - interval '3 hours') AT TIME ZONE 'UTC', now() AT TIME ZONE 'UTC', '{}'),
    ('a', 'PENDING', (now() - interval '9 hours') AT TIME ZONE 'UTC', NULL, '{\"tenant\":7}'),
    ('b', 'PENDING', (now() + interval '1 hour') AT TIME ZONE 'UTC', NULL, '{}'),
    ('c', 'FAILED', (now() - interval '1 hour') AT TIME ZONE 'UTC', NULL, '{}'),
    ('d', 'DONE', (now() - interval '1 hour') AT TIME ZONE 'UTC', NULL, '{}'),
    ('e', 'PENDING', '-infinity', NULL, '{}')";

async fn figures(index: &str) -> (Value, String) {
    let world = World::new(&format!("{TABLE} {index}"), SETTINGS).await;
    world.sql(ROWS).await;
    let service = world.serve();
    let stats = service.call("GET", "/v1/stats?outbox=jobs", "", 200);
    let lanes = stats["lanes"].as_array().unwrap().iter().map(|lane| {
        let hours = lane["oldest_due_age_ms"].as_u64().map(|age| (age / 3_600_000).min(1_000));
        json!([
            lane["type"],
            lane["due"],
            lane["scheduled"],
            lane["processing"],
            lane["dead_letter"],
            hours,
            lane["routed"]
        ])
    });
    assert!(stats["lanes"].as_array().unwrap().iter().all(|lane| lane["capped"] == false), "{stats}");
    let lanes = lanes.collect();
    assert!(service.running.terminate().success());
    (lanes, String::from_utf8(world.program.run(&["doctor"]).stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_table_is_counted_alike_with_and_without_an_index_that_leads_to_its_lanes() {
    let expected = json!([
        ["a", 2, 0, 1, 0, 2, true],
        ["b", 0, 1, 0, 0, null, false],
        ["c", 0, 0, 0, 1, null, false],
        ["e", 1, 0, 0, 0, 1_000, false],
    ]);
    let said = "statistics count at most 100,000";
    let (lanes, doctor) = figures("CREATE INDEX ON job (state, due);").await;
    assert_eq!(lanes, expected);
    assert!(doctor.contains(said), "{doctor}");
    let (lanes, doctor) = figures("CREATE INDEX ON job (state, kind, due);").await;
    assert_eq!(lanes, expected);
    assert!(!doctor.contains(said), "{doctor}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_pass_that_comes_to_its_end_says_that_any_lane_may_have_more() {
    let world = World::new(TABLE, SETTINGS).await;
    world
        .sql(
            "INSERT INTO job (kind, due)
             SELECT CASE WHEN n = 1 THEN 'a' ELSE 'b' END, (now() - interval '1 hour' + n * interval '1 ms') AT TIME ZONE 'UTC'
             FROM generate_series(1, 100001) AS n",
        )
        .await;
    let service = world.serve();
    let stats = service.call("GET", "/v1/stats?outbox=jobs", "", 200);
    let lanes = stats["lanes"].as_array().unwrap();
    assert_eq!((&lanes[0]["due"], &lanes[1]["due"]), (&json!(1), &json!(99_999)));
    assert!(lanes.iter().all(|lane| lane["capped"] == true), "{stats}");
    assert!(lanes[1]["oldest_due_age_ms"].as_u64().unwrap() >= 3_599_000, "the oldest come first: {stats}");
    assert!(service.running.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_in_an_adopted_table_is_kept_in_our_own_schema() {
    let world = World::new(TABLE, SETTINGS).await;
    world.sql("INSERT INTO job (kind, due) VALUES ('a', (now() - interval '1 hour') AT TIME ZONE 'UTC')").await;
    let service = world.serve();
    assert_eq!(service.process("&outbox=jobs")["completed"], 1);
    let before = world.shape().await;
    // A shutdown waits for what has ended to be written down.
    assert!(service.running.terminate().success());
    assert_eq!(world.ask("SELECT outbox || ' ' || completed FROM outbox.minute").await, "jobs 1");
    assert_eq!(world.shape().await, before);
}
