//! The list of events over HTTP.

use serde_json::json as value;

use super::{Api, json};

async fn with_events() -> Api {
    let api = Api::open().await;
    for number in 0..6 {
        let subject = if number < 2 { r#","subject":"invoice/42""# } else { "" };
        // Ids that are made within one millisecond have no order among them.
        let id = format!("0197a000-0000-7000-8000-00000000000{number}");
        let body = format!(r#"{{"id":"{id}","type":"a.{}","payload":{{"n":{number}}}{subject}}}"#, number % 2);
        api.enqueue(&body).await;
    }
    api
}

/// The payloads of all pages, in order.
async fn numbers(api: &Api, query: &str) -> Vec<i64> {
    let mut found = Vec::new();
    let mut path = format!("/v1/events?{query}");
    loop {
        let answer = api.get(&path).await;
        assert_eq!(answer.status(), 200, "{path}: {}", answer.body());
        let page = json(&answer);
        found.extend(page["data"].as_array().unwrap().iter().map(|event| event["payload"]["n"].as_i64().unwrap()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/events?{query}&cursor={cursor}"),
            None => return found,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_in_either_order_with_every_filter() {
    let api = with_events().await;
    let start =
        json(&api.get("/v1/events?order=asc&limit=1").await)["data"][0]["created_at"].as_str().unwrap().to_owned();
    let begun = start.replace('+', "%2B");
    for (query, expected) in [
        ("limit=4".to_owned(), vec![5, 4, 3, 2, 1, 0]),
        ("order=asc&limit=2".to_owned(), vec![0, 1, 2, 3, 4, 5]),
        ("type=a.1&limit=1".to_owned(), vec![5, 3, 1]),
        ("type=a.1&type=a.0&limit=5".to_owned(), vec![5, 4, 3, 2, 1, 0]),
        ("subject=invoice/42".to_owned(), vec![1, 0]),
        ("status=pending&status=processing&type=a.0".to_owned(), vec![4, 2, 0]),
        ("status=dead_letter".to_owned(), vec![]),
        (format!("created_before={begun}"), vec![]),
        ("created_after=2020-01-01T00:00:00Z&order=asc".to_owned(), vec![0, 1, 2, 3, 4, 5]),
    ] {
        assert_eq!(numbers(&api, &query).await, expected, "{query}");
    }
    api.get("/v1/process").await;
    assert_eq!(numbers(&api, "status=completed&type=a.0&order=asc").await, [0, 2, 4]);
    assert_eq!(numbers(&api, "status=pending").await, [] as [i64; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_belongs_to_its_filters_and_its_order() {
    let api = with_events().await;
    let cursor = json(&api.get("/v1/events?type=a.0&limit=1").await)["next_cursor"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&format!("/v1/events?type=a.0&order=desc&cursor={cursor}")).await.status(), 200);
    for query in ["type=a.1", "type=a.0&order=asc", "type=a.0&status=pending", "type=a.0&subject=x", ""] {
        let answer = api.get(&format!("/v1/events?{query}&cursor={cursor}")).await;
        assert_eq!(
            (answer.status().as_u16(), &json(&answer)["errors"][0]["pointer"]),
            (400, &value!("/cursor")),
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_means_nothing_is_refused_by_its_name() {
    let api = Api::open().await;
    for (query, pointer) in [
        ("status=done", "/status"),
        ("status=", "/status"),
        ("order=newest", "/order"),
        ("created_after=today", "/created_after"),
        ("created_before=2026-01-01", "/created_before"),
        ("type=a%20b", "/type"),
        ("limit=0", "/limit"),
        ("error_contains=x", "/error_contains"),
    ] {
        let answer = api.get(&format!("/v1/events?{query}")).await;
        assert_eq!(
            (answer.status().as_u16(), &json(&answer)["errors"][0]["pointer"]),
            (400, &value!(pointer)),
            "{query}"
        );
    }
    assert_eq!(api.post("/v1/events?limit=1", r#"{"type":"a","payload":1}"#).await.status(), 400);
}
