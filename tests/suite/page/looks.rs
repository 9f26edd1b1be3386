//! The page on a phone, in the dark, and for eyes that need contrast.

use serde_json::json;

use super::browser::Browser;
use super::site::Site;

/// Texts whose contrast with what is behind them is too small, by the formula of WCAG 2.
const TOO_FAINT: &str = r"
    const part = (value) => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
    const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    const parsed = (text) => text.match(/[\d.]+/g).map(Number);
    const ground = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parsed(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const root = document.querySelector('dialog[open]') ?? document.body;
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const found = [];
    let seen = 0;
    while (walk.nextNode()) {
        const element = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || !element.checkVisibility() || element.closest('svg, noscript')) continue;
        seen += 1;
        const [one, other] = [light(parsed(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => b - a);
        const ratio = (one + 0.05) / (other + 0.05);
        if (ratio < 4.5) found.push(`${ratio.toFixed(2)}: ${walk.currentNode.data.trim()}`);
    }
    return [seen, found];";

/// Elements that reach beyond the right edge, if the page can be moved sideways.
const TOO_WIDE: &str = "const width = document.documentElement.clientWidth;
    const places = [document.documentElement, ...document.querySelectorAll('dialog[open]')];
    if (places.every((place) => place.scrollWidth <= place.clientWidth)) return [];
    return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > width + 1)
        .map((one) => `${one.tagName}.${one.className}`);";

async fn site_with_everything() -> (Site, String) {
    let site = Site::start().await;
    let long = "W".repeat(180);
    let id = site.dead_letter(&format!("invoice.{long}"), &long, &long.repeat(3));
    site.dead_letter("invoice.created", "invoice/42", "unknown currency");
    site.enqueue("nobody.takes.this", "x", &json!(long));
    site.enqueue("order.shipped", "order/1", &json!({}));
    site.run();
    (site, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wider_than_a_phone_and_every_text_has_contrast_in_light_and_dark() {
    let (site, id) = site_with_everything().await;
    let browser = Browser::start().await;
    for (width, height) in [(360, 740), (1280, 900)] {
        for scheme in ["light", "dark"] {
            browser.window(width, height).await;
            browser.colours(scheme).await;
            browser.open("about:blank").await;
            browser.open(&site.url()).await;
            browser.shows("#verdict-headline", "no route takes it").await;
            browser.shows("#runs", "Nothing was left to claim").await;
            browser.element(&format!("[data-key='open-{id}']")).await;
            for place in ["the page", "an event", "a question"] {
                let wide: Vec<String> = browser.run(TOO_WIDE, Vec::new()).await;
                assert_eq!(wide, Vec::<String>::new(), "{place} at {width}");
                let (seen, faint): (usize, Vec<String>) = browser.run(TOO_FAINT, Vec::new()).await;
                assert!(seen >= 4, "{place}");
                assert_eq!(faint, Vec::<String>::new(), "{place}, {scheme}");
                match place {
                    "the page" => {
                        browser.click(&format!("[data-key='open-{id}']")).await;
                        browser.shows("#event-body", "Why it was given up").await;
                    }
                    "an event" => {
                        browser.click("[data-key=event-discard]").await;
                        browser.shows("#confirm-title", "Discard").await;
                    }
                    _ => {}
                }
            }
        }
    }
    let ground: String = browser.run("return getComputedStyle(document.body).backgroundColor", Vec::new()).await;
    assert_eq!(ground, "rgb(16, 20, 25)", "the last one was dark");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chart_says_in_words_what_it_shows() {
    let (site, _) = site_with_everything().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    browser.shows("#hour", "2 given up").await;
    let label: String =
        browser.run("return document.querySelector('#hour svg').getAttribute('aria-label')", Vec::new()).await;
    assert!(label.contains("1 completed") && label.contains("2 given up"), "{label}");
    browser.click("#hour summary").await;
    browser.shows("#hour table", "given up").await;
}
