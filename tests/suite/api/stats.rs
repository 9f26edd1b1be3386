//! What stands in the lanes, and metrics, through the interface.

use std::time::Duration;

use outboxd::api::{Scope, router_with};
use outboxd::processor::{OutboxParts, Outboxes};
use outboxd::sampler::Sampler;

use super::*;

#[tokio::test]
async fn lanes_are_shown_with_their_counts_their_routes_and_the_last_run() {
    let api = Api::open().await;
    let empty = json(&api.get("/v1/stats").await);
    assert_eq!(
        (&empty["lanes"], &empty["last_run"], &empty["last_hour"]),
        (&json_of("[]"), &Value::Null, &json_of("[]"))
    );
    assert!(empty["as_of"].is_string());

    // Counts are some seconds old: another instance, which has not counted yet, sees what has come since.
    api.enqueue(r#"{"type":"done","payload":1}"#).await;
    let report = json(&api.post("/v1/process", "").await);
    assert_eq!(report["completed"], 1, "{report}");
    api.enqueue(r#"{"type":"a","payload":1}"#).await;
    api.enqueue(r#"{"type":"a","payload":1,"delay_ms":60000}"#).await;
    api.processor.shut_down(Duration::from_secs(9)).await;
    assert_eq!(json(&api.get("/v1/stats").await)["lanes"], json_of("[]"), "nobody counts twice in a few seconds");
    let other = router(ApiSettings::default(), api.processor.clone());
    let stats = json(&Api { router: other, ..api }.get("/v1/stats").await);
    let lane = &stats["lanes"][0];
    let shown =
        ["outbox", "type", "due", "scheduled", "processing", "dead_letter", "routed", "capped"].map(|key| &lane[key]);
    assert_eq!(
        shown.into_iter().cloned().collect::<Value>(),
        json_of(r#"["default","a",1,1,0,0,true,false]"#),
        "{stats}"
    );
    assert!(lane["oldest_due_age_ms"].is_u64(), "{stats}");
    assert_eq!(stats["lanes"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&stats["last_run"]["run_id"], &stats["last_run"]["trigger"]),
        (&report["run_id"], &Value::from("http"))
    );
    let minute = &stats["last_hour"][0];
    assert_eq!((&minute["outbox"], &minute["completed"]), (&Value::from("default"), &Value::from(1)), "{stats}");
    assert!(minute["minute"].as_str().unwrap().ends_with(":00.000000Z"), "{stats}");
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn outbox_narrows_the_lanes_to_one() {
    let api = Api::open().await;
    let second =
        connect(&StoreOptions::new(format!("sqlite://{}", api.folder.path().join("b.db").display()))).await.unwrap();
    second.migrate().await.unwrap();
    let part = |name: &str, store: &Arc<dyn Store>, registry| OutboxParts {
        name: name.to_owned(),
        store: Arc::clone(store),
        registry,
        settings: ProcessorSettings::default(),
    };
    let routed = Registry::new(vec![Route::new("all", vec![Pattern::All], Arc::new(Discard))]).unwrap();
    let parts = vec![part("default", &api.store, routed), part("second", &second, Registry::default())];
    let sampler = Sampler::new(Outboxes::new(parts).unwrap());
    let api = Api { router: router_with(ApiSettings::default(), sampler), ..api };
    api.enqueue(r#"{"type":"a","payload":1}"#).await;
    let event = api.post("/v1/events?outbox=second", r#"{"type":"b","payload":1}"#).await;
    assert_eq!(event.status(), 201);
    let lanes = async |query: &str| -> Vec<String> {
        let stats = json(&api.get(&format!("/v1/stats{query}")).await);
        let lanes = stats["lanes"].as_array().unwrap().iter();
        lanes.map(|lane| format!("{} {} {}", lane["outbox"], lane["type"], lane["routed"])).collect()
    };
    let [first, second] = [r#""default" "a" true"#, r#""second" "b" false"#];
    assert_eq!(lanes("").await, [first, second]);
    assert_eq!(lanes("?outbox=second").await, [second]);
    assert_eq!(lanes("?outbox=default").await, [first]);
    assert_eq!(json(&api.get("/v1/stats?outbox=third").await)["code"], "outbox-not-found");
    assert_eq!(json(&api.get("/v1/stats?since=1").await)["code"], "invalid-request");
}

#[tokio::test]
async fn counts_that_cannot_be_renewed_are_refused_and_metrics_are_not() {
    let api = Api::open().await;
    api.store.close().await;
    assert_eq!(json(&api.get("/v1/stats").await)["code"], "database-unavailable");
    let metrics = api.get("/metrics").await;
    assert_eq!(metrics.status(), 200);
    assert_eq!(metrics.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(metrics.body().contains("\noutbox_build_info{"), "{}", metrics.body());
}

#[tokio::test]
async fn stats_want_the_scope_read_and_metrics_their_own_unless_they_are_public() {
    let token = |name: &str, scope| Token::new(name, [scope].into(), name).unwrap();
    let tokens = || vec![token("reader", Scope::Read), token("prometheus", Scope::Metrics)];
    let api = Api::with(tokens(), Arc::new(Discard)).await;
    let status = async |api: &Api, path: &str, token: &str| {
        let request = Request::get(path).header("authorization", format!("Bearer {token}"));
        api.send(request.body(Body::empty()).unwrap()).await.status().as_u16()
    };
    for (token, stats, metrics) in [("reader", 200, 403), ("prometheus", 403, 200), ("nobody", 401, 401)] {
        assert_eq!((status(&api, "/v1/stats", token).await, status(&api, "/metrics", token).await), (stats, metrics));
    }
    let settings = ApiSettings { tokens: tokens(), public_metrics: true, ..ApiSettings::default() };
    let public = Api { router: router(settings, api.processor.clone()), ..api };
    assert_eq!(public.get("/metrics").await.status(), 200);
    assert_eq!(public.get("/v1/stats").await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_ask_at_once_have_one_count_made() {
    let api = Api::open().await;
    let asked = (0..50).map(|_| async { json(&api.get("/v1/stats").await)["as_of"].clone() });
    let answers = futures_util::future::join_all(asked).await;
    assert!(answers[0].is_string() && answers.iter().all(|as_of| *as_of == answers[0]), "{answers:?}");
}
