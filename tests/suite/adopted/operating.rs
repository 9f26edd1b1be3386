//! What operators do in an adopted table: lists, many dead letters at once, and who did what.

use std::collections::BTreeSet;

use serde_json::json;

use super::drizzle::{SETTINGS, TABLES, UTC};
use super::*;

const ROWS: usize = 700;

/// Dead letters of two types, with one pending event among them.
async fn world(tables: &str, settings: &str) -> World {
    let world = World::new(tables, settings).await;
    world
        .sql(&format!(
            "INSERT INTO outbox_event (id, event_type, payload, status, attempts, available_at, created_at, processed_at, last_error)
             SELECT 'e' || n, CASE WHEN n % 7 = 0 THEN 'rare' ELSE 'often' END, '{{}}',
                    CASE WHEN n = 3 THEN 'pending' ELSE 'dead_letter' END, 4, {UTC}, {UTC} - (n % 50) * interval '1 hour',
                    CASE WHEN n <> 3 THEN {UTC} END, 'refused ' || n
             FROM generate_series(1, {ROWS}) AS n"
        ))
        .await;
    world
}

/// The ids of all pages, each once.
fn listed(service: &Service, query: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = service.call("GET", &format!("/v1/events?outbox=app&{query}{cursor}"), "", 200);
        found.extend(page["data"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "an event is listed once");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_by_their_creation_where_an_index_leads_and_else_by_their_ids() {
    for (index, order) in [("CREATE INDEX ON outbox_event (created_at);", "created_at, id"), ("", "id")] {
        let world = world(&format!("{TABLES}{index}"), SETTINGS).await;
        let service = world.serve();
        let ids = |order: &str, filter: &str| {
            format!("SELECT string_agg(id, ' ' ORDER BY {order}) FROM outbox_event WHERE {filter}")
        };
        let rising = world.ask(&ids(order, "true")).await;
        assert_eq!(listed(&service, "order=asc&limit=90").join(" "), rising);
        let mut falling = listed(&service, "limit=200");
        falling.reverse();
        assert_eq!(falling.join(" "), rising);
        let rare = world.ask(&ids(order, "event_type = 'rare' AND status = 'dead_letter'")).await;
        assert_eq!(listed(&service, "order=asc&type=rare&status=dead_letter&limit=7").join(" "), rare);
        assert_eq!(listed(&service, "status=pending"), ["e3"]);
        assert_eq!(listed(&service, "created_after=2999-01-01T00:00:00Z").len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_dead_letters_are_requeued_once_with_the_name_of_who_asked() {
    let world = world(TABLES, SETTINGS).await;
    let service = world.serve();
    let body = r#"{"filter":{"types":["often"]},"limit":500,"note":"receiver is back","spread_ms":60000}"#;
    let first = service.call("POST", "/v1/dead-letters/requeue?outbox=app", body, 200);
    assert_eq!((&first["changed"], &first["more"]), (&json!(500), &json!(true)), "{first}");
    let second = service.call("POST", "/v1/dead-letters/requeue?outbox=app", body, 200);
    assert_eq!((&second["changed"], &second["more"]), (&json!(99), &json!(false)), "{second}");
    assert_eq!(world.ask("SELECT count(*) FROM outbox_event WHERE status = 'pending' AND attempts = 0").await, "599");
    assert_eq!(world.ask("SELECT count(*) FROM outbox_event WHERE status = 'dead_letter'").await, "100");
    let event = service.call("GET", "/v1/events/e1?outbox=app&include=attempts", "", 200);
    let line = &event["actions_log"][0];
    assert_eq!(
        (&line["action"], &line["actor"], &line["note"]),
        (&json!("requeue"), &json!("anybody"), &json!("receiver is back"))
    );
    assert_eq!(event["actions_log"].as_array().unwrap().len(), 1);

    let body = r#"{"ids":["e7","e14","e3","nobody"]}"#;
    let named = service.call("POST", "/v1/dead-letters/requeue?outbox=app", body, 200);
    assert_eq!((&named["matched"], &named["changed"]), (&json!(2), &json!(2)), "{named}");
    service.call("POST", "/v1/dead-letters/e21/requeue?outbox=app", r#"{"max_attempts":3}"#, 200);
    assert_eq!(world.ask("SELECT max_attempts FROM outbox_event WHERE id = 'e21'").await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_table_has_no_place_for_is_refused_by_its_name() {
    let settings = SETTINGS.replace("max_attempts = \"max_attempts\"\n", "");
    let world = world(TABLES, &settings).await;
    let service = world.serve();
    let problem = service.call("POST", "/v1/dead-letters/e1/requeue?outbox=app", r#"{"max_attempts":3}"#, 400);
    assert_eq!(problem["errors"][0]["pointer"], "/max_attempts", "{problem}");
    let problem = service.call("POST", "/v1/dead-letters/discard?outbox=app", r#"{"ids":["e1"]}"#, 400);
    assert!(problem["detail"].as_str().unwrap().contains("no status"), "{problem}");
    assert_eq!(world.ask("SELECT count(*) FROM outbox_event WHERE status = 'dead_letter'").await, "699");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discard_is_noted_and_the_note_goes_when_its_event_is_purged() {
    let settings =
        SETTINGS.replace("dead_letter = \"dead_letter\"\n", "dead_letter = \"dead_letter\"\nskipped = \"skipped\"\n");
    let world = world(TABLES, &settings).await;
    let service = world.serve();
    let body = r#"{"filter":{"error_contains":"refused 69"},"note":"useless"}"#;
    let done = service.call("POST", "/v1/dead-letters/discard?outbox=app", body, 200);
    assert_eq!(done["changed"], json!(11), "{done}");
    assert_eq!(
        world.ask("SELECT count(*) FROM outbox_event WHERE status = 'skipped' AND last_error = 'useless'").await,
        "11"
    );
    assert_eq!(world.ask("SELECT count(*) FROM outbox.action WHERE outbox = 'app' AND action = 'discard'").await, "11");
}
