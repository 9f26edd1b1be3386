//! The page without a mouse.

use serde_json::Value;

use super::browser::Browser;
use super::site::Site;

/// What has the focus, in words, and whether one sees it.
const FOCUS: &str = "const focused = document.activeElement;
    const style = getComputedStyle(focused);
    const name = focused.dataset.key || focused.id || focused.className || focused.textContent.trim();
    return [name, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && focused.checkVisibility()];";

// Keys as WebDriver writes them.
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

async fn focus(browser: &Browser) -> (String, bool) {
    browser.run(FOCUS, Vec::new()).await
}

/// Goes on with Tab until this has the focus, over nothing that would not be seen; answers what was passed.
async fn tab_to(browser: &Browser, target: &str) -> Vec<String> {
    let mut passed = Vec::new();
    while passed.len() < 60 {
        browser.press(TAB).await;
        let (name, visible) = focus(browser).await;
        assert!(visible, "the focus on {name} is not seen");
        if name == target {
            return passed;
        }
        passed.push(name);
    }
    panic!("{target} is not reached: {passed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_opened_and_requeued_by_keys_alone() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    let id = site.dead_letter("invoice.created", "invoice/42", "no");
    site.run();
    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "given up").await;
    browser.element(&format!("[data-key='open-{id}']")).await;

    let passed = tab_to(&browser, &format!("open-{id}")).await;
    for stop in ["skip", "token-button", "verdict-dead-letters", "dead-type", "dead-error", "choose-all", "all-requeue"]
    {
        assert!(passed.contains(&stop.to_owned()), "{stop} is not among {passed:?}");
    }
    browser.press(ENTER).await;
    browser.shows("#event-body", "Why it was given up").await;
    tab_to(&browser, "event-requeue").await;
    browser.press(ENTER).await;
    browser.shows("#confirm-title", "Requeue").await;
    browser.press(ESCAPE).await;
    browser.hides("#confirm").await;
    browser.shows("#event-title", "dead letter").await;
    browser.holds("return document.activeElement.dataset.key === 'event-requeue'", Vec::new()).await;

    browser.press(ENTER).await;
    browser.shows("#confirm-title", "Requeue").await;
    browser.press("by keyboard").await;
    browser.press(ENTER).await;
    browser.shows("#event-title", "pending").await;
    // The button that was pressed is gone; the focus stays in the dialog.
    browser.holds("return document.activeElement.id === 'event-close'", Vec::new()).await;
    let event = site.call("GET", &format!("/v1/events/{id}"), &Value::Null);
    assert_eq!(event["status"], "pending");
    // Its place in the list is gone by now: the focus goes to the list.
    browser.shows("#dead-list", "No dead letters").await;
    browser.press(ESCAPE).await;
    browser.hides("#event").await;
    browser.holds("return document.activeElement.id === 'dead-letters'", Vec::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_closes_a_dialog_and_the_focus_returns_to_where_it_was() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    let id = site.dead_letter("invoice.created", "invoice/42", "no");
    browser.open(&site.url()).await;
    browser.element(&format!("[data-key='open-{id}']")).await;
    tab_to(&browser, &format!("open-{id}")).await;
    browser.press(ENTER).await;
    browser.shows("#event-title", "invoice.created").await;
    // A modal dialog keeps the keys to itself.
    for _ in 0..15 {
        browser.press(TAB).await;
        let inside = "return document.activeElement === document.body || !!document.activeElement.closest('#event')";
        assert!(browser.run::<bool>(inside, Vec::new()).await, "{:?}", focus(&browser).await);
    }
    browser.press(ESCAPE).await;
    browser.hides("#event").await;
    let returned = "return document.activeElement.dataset.key === `open-${arguments[0]}`";
    browser.holds(returned, vec![id.as_str().into()]).await;
}
