//! Many dead letters at once over HTTP.

use std::sync::Arc;

use outboxd::api::{Scope, Token};
use outboxd::handler::Discard;
use serde_json::{Value, json as value};

use super::dead_letters::with_dead_letters;
use super::{Api, json};

async fn post(api: &Api, path: &str, body: &Value) -> (u16, Value) {
    let answer = api.post(path, &body.to_string()).await;
    (answer.status().as_u16(), json(&answer))
}

async fn ids(api: &Api) -> Vec<String> {
    let page = json(&api.get("/v1/dead-letters?limit=200").await);
    page["data"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_requeues_what_matches_and_a_dry_run_only_counts() {
    let api = with_dead_letters(7).await;
    let mut body = value!({"filter": {"types": ["a.1"]}, "dry_run": true});
    let (status, counted) = post(&api, "/v1/dead-letters/requeue", &body).await;
    assert_eq!(
        (status, &counted["matched"], &counted["changed"], &counted["more"]),
        (200, &value!(3), &value!(0), &value!(false))
    );
    assert_eq!(ids(&api).await.len(), 7);
    body["dry_run"] = value!(false);
    body["note"] = value!("receiver is back");
    let (_, changed) = post(&api, "/v1/dead-letters/requeue", &body).await;
    assert_eq!(
        (&changed["matched"], &changed["changed"], &changed["next_cursor"]),
        (&value!(3), &value!(3), &Value::Null)
    );
    assert_eq!(ids(&api).await.len(), 4);
    let id = changed["sample_ids"][0].as_str().unwrap();
    let event = json(&api.get(&format!("/v1/events/{id}?include=attempts")).await);
    let line = &event["actions_log"][0];
    assert_eq!(
        (&line["action"], &line["actor"], &line["note"]),
        (&value!("requeue"), &value!("anybody"), &value!("receiver is back"))
    );
    assert!(line["at"].is_string() && event["status"] == "pending", "{event}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_discarded_and_the_rest_is_left() {
    let api = with_dead_letters(4).await;
    let all = ids(&api).await;
    let (_, done) = post(&api, "/v1/dead-letters/discard", &value!({"ids": all[..2], "note": "test data"})).await;
    assert_eq!((&done["changed"], &done["more"]), (&value!(2), &value!(false)));
    assert_eq!(ids(&api).await, all[2..]);
    let event = json(&api.get(&format!("/v1/events/{}", all[0])).await);
    assert_eq!((&event["status"], &event["last_error"]), (&value!("skipped"), &value!("test data")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_by_a_limit_is_reached_by_its_cursor_or_by_asking_again() {
    let api = with_dead_letters(6).await;
    let body = value!({"filter": {"error_contains": "receiver"}, "limit": 2, "dry_run": true});
    let (_, first) = post(&api, "/v1/dead-letters/requeue", &body).await;
    assert_eq!((&first["matched"], &first["more"]), (&value!(2), &value!(true)));
    let mut next = body.clone();
    next["cursor"] = first["next_cursor"].clone();
    let (_, second) = post(&api, "/v1/dead-letters/requeue", &next).await;
    assert_ne!(first["sample_ids"], second["sample_ids"]);
    next["filter"] = value!({"types": ["a.0"]});
    let (status, problem) = post(&api, "/v1/dead-letters/requeue", &next).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &value!("/cursor")), "of another filter");
    let body = value!({"filter": {"error_contains": "receiver"}, "limit": 4});
    let (_, first) = post(&api, "/v1/dead-letters/requeue", &body).await;
    let (_, second) = post(&api, "/v1/dead-letters/requeue", &body).await;
    assert_eq!((&first["changed"], &first["more"]), (&value!(4), &value!(true)));
    assert_eq!((&second["changed"], &second["more"]), (&value!(2), &value!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_would_mean_everything_is_refused() {
    let api = with_dead_letters(1).await;
    for body in
        [value!({}), value!({"filter": {}}), value!({"ids": []}), value!({"filter": {"types": []}, "dry_run": true})]
    {
        for path in ["/v1/dead-letters/requeue", "/v1/dead-letters/discard"] {
            let (status, problem) = post(&api, path, &body).await;
            assert_eq!((status, &problem["code"]), (400, &value!("empty-filter")), "{body}");
        }
    }
    assert_eq!(api.post("/v1/dead-letters/requeue", "").await.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named() {
    let api = Api::open().await;
    let filter = value!({"types": ["a"]});
    for (body, pointer) in [
        (value!({"filter": filter, "ids": ["0197a000-0000-7000-8000-000000000001"]}), "/filter"),
        (value!({"ids": ["0197a000-0000-7000-8000-000000000001", "x"]}), "/ids/1"),
        (value!({"filter": {"types": ["a", "b c"]}}), "/filter/types/1"),
        (value!({"filter": {"error_contains": ""}}), "/filter/error_contains"),
        (value!({"filter": {"subject": "a\u{1}"}}), "/filter/subject"),
        (value!({"filter": {"colour": "red"}}), "/filter/colour"),
        (value!({"filter": {"dead_after": "yesterday"}}), "/filter/dead_after"),
        (value!({"filter": filter, "limit": 0}), "/limit"),
        (value!({"filter": filter, "limit": 10_001}), "/limit"),
        (value!({"filter": filter, "cursor": "x"}), "/cursor"),
        (value!({"filter": filter, "note": "n".repeat(201)}), "/note"),
        (value!({"filter": filter, "spread_ms": 316_224_000_001_u64}), "/spread_ms"),
    ] {
        let (status, problem) = post(&api, "/v1/dead-letters/requeue", &body).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &value!(pointer)), "{body}: {problem}");
    }
    let (status, _) = post(&api, "/v1/dead-letters/discard", &value!({"filter": filter, "spread_ms": 1})).await;
    assert_eq!(status, 400, "a discard spreads nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_token_that_may_operate_changes_anything_and_its_name_is_kept() {
    let token =
        |name: &str, scope: Scope| Token::new(name, [Scope::Enqueue, scope].into(), &format!("secret-{name}")).unwrap();
    let tokens = vec![token("reader", Scope::Read), token("operator", Scope::Operate)];
    let api = Api::with(tokens, Arc::new(Discard)).await;
    let send = async |name: &str, path: &str, body: &str| {
        let request = axum::http::Request::post(path).header("authorization", format!("Bearer secret-{name}"));
        api.send(request.body(axum::body::Body::from(body.to_owned())).unwrap()).await
    };
    let event = json(&send("reader", "/v1/events", r#"{"type":"a","payload":1}"#).await);
    let id = event["id"].as_str().unwrap();
    let body = r#"{"filter":{"types":["a"]}}"#;
    for path in ["/v1/dead-letters/requeue", "/v1/dead-letters/discard"] {
        assert_eq!(send("reader", path, body).await.status(), 403);
        assert_eq!(send("operator", path, body).await.status(), 200);
    }
    let cancel = format!("/v1/events/{id}/cancel");
    assert_eq!(send("operator", &cancel, r#"{"reason":"wrong order"}"#).await.status(), 200);
    let log = api.store.actions(&id.parse().unwrap()).await.unwrap();
    assert_eq!((log[0].actor.as_str(), log[0].note.as_deref()), ("operator", Some("wrong order")));
}
