//! Runs over HTTP.

use std::time::Duration;

use super::{Api, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_reports_what_it_did_by_get_and_by_post() {
    let api = Api::open().await;
    for path_and_body in [None, Some(""), Some(r#"{"batch_size":10,"types":["a"]}"#)] {
        api.enqueue(r#"{"type":"a","payload":1}"#).await;
        let answer = match path_and_body {
            None => api.get("/v1/process?batch_size=5&types=a&types=b").await,
            Some(body) => api.post("/v1/process", body).await,
        };
        assert_eq!((answer.status().as_u16(), answer.headers()["cache-control"].to_str().unwrap()), (200, "no-store"));
        let report = json(&answer);
        assert_eq!((report["state"].as_str(), report["completed"].as_u64()), (Some("finished"), Some(1)), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_in_which_nothing_fits_names_the_smallest_that_would_do() {
    let api = Api::open().await;
    let answer = api.get("/v1/process?max_runtime_ms=1000").await;
    assert_eq!((answer.status().as_u16(), json(&answer)["code"].as_str()), (400, Some("invalid-budget")));
    assert!(json(&answer)["detail"].as_str().unwrap().contains("31000"), "{}", answer.body());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_run_is_found_under_its_location() {
    let api = Api::open().await;
    api.enqueue(r#"{"type":"a","payload":1}"#).await;
    let begun = api.post("/v1/process?mode=async", "").await;
    assert_eq!((begun.status().as_u16(), json(&begun)["state"].as_str()), (202, Some("running")));
    let location = begun.headers()["location"].to_str().unwrap();
    let read = api.get(location).await;
    assert_eq!((read.status().as_u16(), json(&read)["trigger"].as_str()), (200, Some("http")));
    api.processor.shut_down(Duration::from_secs(5)).await;
    assert_eq!(json(&api.get(location).await)["state"], "finished");
    assert_eq!(json(&api.get("/v1/runs").await)["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_event_is_processed_by_its_id() {
    let api = Api::open().await;
    let id = api.enqueue(r#"{"type":"a","payload":[1, 2]}"#).await;
    for body in ["", r#"{"wait_ms":1000}"#] {
        let answer = api.post(&format!("/v1/events/{id}/process"), body).await;
        assert_eq!((answer.status().as_u16(), json(&answer)["outcome"].as_str()), (200, Some("completed")));
        assert_eq!(json(&answer)["event"]["status"], "completed");
    }
    let later = api.enqueue(r#"{"type":"a","payload":1,"delay_ms":60000}"#).await;
    let answer = json(&api.post(&format!("/v1/events/{later}/process?wait_ms=1000"), "").await);
    assert_eq!(answer["outcome"], "pending");
    assert!(answer["reason"].is_string(), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_shutting_down_turns_work_away() {
    let api = Api::open().await;
    let id = api.enqueue(r#"{"type":"a","payload":1}"#).await;
    assert_eq!(api.get("/readyz").await.status(), 200);
    api.processor.begin_shutdown();
    for answer in [
        api.get("/readyz").await,
        api.get("/v1/process").await,
        api.post("/v1/process?mode=async", "").await,
        api.post(&format!("/v1/events/{id}/process"), "").await,
    ] {
        assert_eq!((answer.status().as_u16(), json(&answer)["code"].as_str()), (503, Some("shutting-down")));
        assert_eq!(answer.headers()["connection"], "close");
        assert!(answer.headers().contains_key("retry-after"));
    }
    assert_eq!(api.get("/livez").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_gone_is_503_and_not_500() {
    let api = Api::open().await;
    api.store.close().await;
    for path in ["/readyz", "/v1/process", "/v1/runs", "/v1/dead-letters"] {
        let answer = api.get(path).await;
        assert_eq!(
            (answer.status().as_u16(), json(&answer)["code"].as_str()),
            (503, Some("database-unavailable")),
            "{path}"
        );
        assert!(answer.headers().contains_key("retry-after"));
    }
}
