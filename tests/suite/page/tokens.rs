//! Tokens on the page: typed in, kept where their user wants them, and told apart by what they may do.

use super::browser::Browser;
use super::site::{Site, TOKENS};

async fn enter(browser: &Browser, token: &str, keep: bool) {
    browser.write("#token", token).await;
    if keep {
        browser.click("#token-keep").await;
    }
    browser.click("#token-form button.main").await;
}

const STORED: &str =
    "return JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie, location.href])";

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_an_unknown_and_a_token_without_the_scope_are_told_apart() {
    let site = Site::with_settings(TOKENS).await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "A token is needed").await;
    enter(&browser, "nobody-has-this", false).await;
    browser.shows("#verdict-headline", "does not know this token").await;
    enter(&browser, "scheduler-token", false).await;
    browser.shows("#verdict-headline", "This token may not read").await;
    browser.shows("#verdict-text", "scope read").await;
    browser.hides("#data").await;
    enter(&browser, "reader-token", false).await;
    browser.shows("#verdict-headline", "nothing has ever called").await;
    browser.hides("#token-form").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_kept_in_memory_unless_its_user_wants_more() {
    let site = Site::with_settings(TOKENS).await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    enter(&browser, "reader-token", false).await;
    browser.hides("#token-form").await;
    assert!(!browser.run::<String>(STORED, Vec::new()).await.contains("reader-token"));
    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "A token is needed").await;

    enter(&browser, "reader-token", true).await;
    browser.hides("#token-form").await;
    assert_eq!(browser.run::<String>(STORED, Vec::new()).await.matches("reader-token").count(), 1);
    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "nothing has ever called").await;
    browser.click("#token-button").await;
    browser.click("#token-forget").await;
    browser.shows("#verdict-headline", "A token is needed").await;
    browser.hides("#data").await;
    assert!(!browser.run::<String>(STORED, Vec::new()).await.contains("reader-token"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_only_read_sees_no_payload_and_is_told_what_it_lacks() {
    let site = Site::start().await;
    let id = site.dead_letter("invoice.created", "invoice/42", "no");
    let site = site.behind_tokens().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    enter(&browser, "reader-token", false).await;
    browser.click(&format!("[data-key='open-{id}']")).await;
    browser.shows("#event-body", "A token with the scope payload sees it").await;
    browser.click("[data-key=event-requeue]").await;
    browser.click("#confirm-yes").await;
    browser.shows("#event .message", "needs a token with the scope operate").await;
    browser.shows("#event-title", "dead letter").await;
}
