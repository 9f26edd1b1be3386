//! `outbox` chooses what a request is about.

use outboxd::processor::{OutboxParts, Outboxes};

use super::*;

/// Two outboxes, each in a file of its own.
async fn two(has_default: bool) -> Api {
    let api = Api::open().await;
    let url = format!("sqlite://{}", api.folder.path().join("second.db").display());
    let second = connect(&StoreOptions::new(url)).await.unwrap();
    second.migrate().await.unwrap();
    let part = |name: &str, store: &Arc<dyn Store>| OutboxParts {
        name: name.to_owned(),
        store: Arc::clone(store),
        registry: Registry::new(vec![Route::new("all", vec![Pattern::All], Arc::new(Discard))]).unwrap(),
        settings: ProcessorSettings::default(),
    };
    let outboxes = Outboxes::new(vec![part("default", &api.store), part("orders", &second)]).unwrap();
    let outboxes = if has_default { outboxes } else { outboxes.without_default() };
    Api { router: router(ApiSettings::default(), outboxes), ..api }
}

#[tokio::test]
async fn an_event_is_found_only_in_its_outbox() {
    let api = two(true).await;
    let answer = api.post("/v1/events?outbox=orders", r#"{"type":"a","payload":1}"#).await;
    assert_eq!((answer.status().as_u16(), json(&answer)["outbox"].as_str()), (201, Some("orders")));
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    assert!(location.ends_with("?outbox=orders"), "{location}");
    assert_eq!(json(&api.get(&location).await)["outbox"], "orders");
    let path = location.trim_end_matches("?outbox=orders");
    assert_eq!(json(&api.get(path).await)["code"], "event-not-found");
    let processed = api.post(&format!("{path}/process?outbox=orders"), "").await;
    assert_eq!(json(&processed)["event"]["outbox"], "orders", "{}", processed.body());
}

#[tokio::test]
async fn an_unknown_outbox_is_answered_with_those_that_exist() {
    let api = two(true).await;
    let id = "0197a000-0000-7000-8000-000000000001";
    for path in ["/v1/dead-letters", "/v1/runs", "/v1/process", &format!("/v1/events/{id}"), "/v1/events/in-flight"] {
        let subject = if path.ends_with("flight") { "&subject=s" } else { "" };
        let problem = json(&api.get(&format!("{path}?outbox=other{subject}")).await);
        assert_eq!(
            (problem["status"].as_u64(), problem["code"].as_str()),
            (Some(404), Some("outbox-not-found")),
            "{path}"
        );
        assert!(problem["detail"].as_str().unwrap().ends_with("valid are: `default`, `orders`"), "{problem}");
    }
    let problem = json(&api.post("/v1/process", r#"{"outbox":"other"}"#).await);
    assert_eq!(problem["code"], "outbox-not-found");
}

#[tokio::test]
async fn a_run_serves_all_outboxes_or_the_named_one() {
    let api = two(true).await;
    for outbox in ["default", "orders"] {
        api.post(&format!("/v1/events?outbox={outbox}"), r#"{"type":"a","payload":1}"#).await;
    }
    let report = json(&api.post("/v1/process", r#"{"outbox":"orders","mode":"async"}"#).await);
    let run = format!("/v1/runs/{}", report["run_id"].as_str().unwrap());
    assert_eq!(json(&api.get(&run).await)["code"], "run-not-found");
    assert_eq!(json(&api.get(&format!("{run}?outbox=orders")).await)["run_id"], report["run_id"]);
    let report = json(&api.post("/v1/process", "").await);
    // The run over one outbox may still be under way.
    assert!([1, 2].contains(&report["completed"].as_u64().unwrap()), "{report}");
    assert_eq!(json(&api.get(&format!("/v1/runs/{}", report["run_id"].as_str().unwrap())).await)["state"], "finished");
}

#[tokio::test]
async fn without_a_default_outbox_each_request_names_its_own() {
    let api = two(false).await;
    let refused = json(&api.post("/v1/events", r#"{"type":"a","payload":1}"#).await);
    assert_eq!(refused["code"], "outbox-not-found");
    assert!(refused["detail"].as_str().unwrap().contains("`outbox` must be given"), "{refused}");
    let answer = api.post("/v1/events?outbox=default", r#"{"type":"a","payload":1}"#).await;
    assert!(answer.headers()["location"].to_str().unwrap().ends_with("?outbox=default"));
    assert_eq!(json(&api.post("/v1/process", "").await)["completed"], 1);
    assert_eq!(api.get("/v1/runs").await.status(), 200);
    assert_eq!(api.get("/readyz").await.status(), 200);
}

#[tokio::test]
async fn a_cursor_of_one_outbox_is_refused_in_another() {
    let api = two(true).await;
    for _ in 0..2 {
        let body = r#"{"type":"a","payload":1,"max_attempts":1}"#;
        let id = json(&api.post("/v1/events", body).await)["id"].as_str().unwrap().to_owned();
        let id = api.store.parse_id(&id).unwrap();
        let lease = api.store.claim_by_id(&id, std::time::Duration::from_secs(9)).await.unwrap().unwrap().lease;
        let change = outboxd::outcome::Change::DeadLetter { error: "e".to_owned(), spends_attempt: true };
        let settlement = outboxd::outcome::Settlement { lease, change, attempt: None };
        api.store.settle(&[settlement]).await.unwrap();
    }
    let page = json(&api.get("/v1/dead-letters?limit=1").await);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = |outbox: &str| format!("/v1/dead-letters?limit=1&cursor={cursor}&outbox={outbox}");
    assert_eq!(api.get(&next("default")).await.status(), 200);
    assert_eq!(api.get(&next("orders")).await.status(), 400);
}
