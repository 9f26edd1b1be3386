//! Many dead letters at once.

use serde_json::{Value, json};

use super::browser::Browser;
use super::site::Site;

/// Dead letters, half of them of each type.
async fn plant(site: &Site, count: usize) {
    let event = |at: usize| json!({"type": if at.is_multiple_of(2) { "invoice.created" } else { "order.shipped" }, "payload": at});
    let events: Vec<Value> = (0..count).map(event).collect();
    site.call("POST", "/v1/events/batch", &json!({"events": events}));
    site.sql(
        "UPDATE outbox_event SET status = 'dead_letter', dead_at = created_at, processed_at = created_at, attempts = 10,
            last_error = CASE event_type WHEN 'invoice.created' THEN 'HTTP 500' ELSE 'HTTP 422: no' END",
    )
    .await;
}

async fn count(site: &Site, condition: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM outbox_event WHERE {condition}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&mut site.database().await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_match_a_filter_are_counted_first_and_then_requeued() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    plant(&site, 900).await;
    browser.open(&site.url()).await;
    browser.shows("#dead-list", "HTTP 500").await;
    browser.write("#dead-error", "422").await;
    browser.click("#dead-filter button").await;
    browser.shows("#dead-bulk", "All that match").await;
    browser.click("[data-key=all-requeue]").await;
    browser.shows("#confirm-title", "Requeue 450 dead letters?").await;
    assert_eq!(count(&site, "status = 'dead_letter'").await, 900);
    browser.write("#confirm input[name=note]", "the field is optional now").await;
    browser.click("#confirm-yes").await;
    browser.shows("#notice", "Requeued 450 dead letters").await;
    assert_eq!(count(&site, "status = 'pending' AND event_type = 'order.shipped'").await, 450);
    assert_eq!(count(&site, "status = 'dead_letter' AND event_type = 'invoice.created'").await, 450);
    browser.shows("#dead-list", "No dead letter matches the filter").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_were_chosen_are_discarded_and_no_other() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    plant(&site, 40).await;
    browser.open(&site.url()).await;
    browser.click("[data-key=choose-all]").await;
    browser.click("tbody tr:nth-child(3) .choice input").await;
    browser.shows("#dead-bulk", "9 chosen").await;
    browser.click("[data-key=chosen-discard]").await;
    browser.shows("#confirm-title", "Discard 9 dead letters?").await;
    browser.click("#confirm-yes").await;
    browser.shows("#notice", "Discarded 9 dead letters").await;
    assert_eq!(count(&site, "status = 'skipped'").await, 9);
    assert_eq!(count(&site, "status = 'dead_letter'").await, 31);
}
