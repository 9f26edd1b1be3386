//! Two hundred hostile strings in every place that data can reach: each is shown as the text that it is.

use serde_json::{Value, json};

use super::browser::Browser;
use super::site::Site;
use crate::support::receiver::Reply;

/// What a script would do if it ran, each time in the words of another trick.
const TRICKS: [&str; 40] = [
    "<script>alert(1)</script>",
    "<ScRiPt src=data:text/javascript,alert(1)></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<img src='x' onerror='alert(1)'/>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><use href=\"data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'></svg>#x\"/></svg>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)></object>",
    "<embed src=javascript:alert(1)>",
    "<a href=javascript:alert(1) autofocus>x</a>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<math><mi xlink:href=javascript:alert(1)>x</mi></math>",
    "<style>*{background:url(javascript:alert(1))}</style>",
    "<link rel=stylesheet href=//evil.invalid/x.css>",
    "<base href=//evil.invalid/>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<form action=javascript:alert(1)><button autofocus>x</button></form>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<dialog open><button popovertarget=x>x</button></dialog>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "${alert(1)}",
    "{{constructor.constructor('alert(1)')()}}",
    "`-alert(1)-`",
    "'-alert(1)-'",
    "\\x3cscript\\x3ealert(1)\\x3c/script\\x3e",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u{202e}<script>alert(1)</script>\u{202c}",
    "<scr\u{200b}ipt>alert(1)</scr\u{200b}ipt>",
    "<img src=x onerror=\u{2028}alert(1)>",
    "__proto__",
];

/// How each of them tries to leave the place where it stands.
const WRAPPINGS: [(&str, &str); 5] =
    [("", ""), ("\">", "<!--"), ("'>", ""), ("</pre></textarea></title></script>", ""), ("-->]]>", "<![CDATA[")];

/// What a type may hold that other parts of the page could take for something else.
const TYPES: [&str; 8] = [
    "__proto__",
    "constructor",
    "toString",
    "javascript:alert",
    "//evil.invalid/x",
    "data:text/html",
    "innerHTML",
    "-",
];

fn hostile() -> Vec<String> {
    TRICKS
        .iter()
        .flat_map(|trick| WRAPPINGS.iter().map(move |(before, after)| format!("{before}{trick}{after}")))
        .collect()
}

/// Dead letters that hold the string as subject, error and payload. Answers their ids in the strings' order.
async fn plant(site: &Site, strings: &[String]) -> Vec<String> {
    let events: Vec<Value> = strings
        .iter()
        .enumerate()
        .map(|(at, text)| json!({"type": TYPES[at % TYPES.len()], "payload": {text: [text]}, "headers": {"x-note": "plain"}}))
        .collect();
    let answer = site.call("POST", "/v1/events/batch", &json!({"events": events}));
    let ids: Vec<String> = serde_json::from_value(answer["ids"].clone()).unwrap();
    let mut database = site.database().await;
    for (at, (id, text)) in ids.iter().zip(strings).enumerate() {
        let sql = "UPDATE outbox_event SET status = 'dead_letter', subject = ?1, last_error = ?1, attempts = 10,
            dead_at = created_at + ?2, processed_at = created_at + ?2 WHERE id = ?3";
        let update = sqlx::query(sql).bind(text).bind(at as i64).bind(id);
        assert_eq!(update.execute(&mut database).await.unwrap().rows_affected(), 1);
    }
    ids
}

/// What the page shows of an event: its subject, its error, its payload.
const OPEN: &str = "const [id, done] = arguments;
    import(new URL('page/event.js', document.baseURI)).then(async ({ openEvent }) => {
        await openEvent(id, 'default');
        const text = (selector) => document.querySelector(selector).textContent;
        done([text('#event-body pre.error'), text('#event-payload'), text('#event-body .facts')]);
    });";

/// Elements that the page itself never makes.
const INTRUDERS: &str = "return [...document.querySelectorAll(
    'main script, dialog script, iframe, object, embed, img, video, audio, math, base, style, marquee, template, ' +
    'main a[href], dialog a[href], meta[http-equiv], svg script, svg use, svg animate')].map((one) => one.outerHTML)";

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_hostile_strings_are_shown_as_text_and_run_nothing() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    let strings = hostile();
    assert_eq!(strings.len(), 200);
    let ids = plant(&site, &strings).await;
    browser.open(&site.url()).await;
    // Every page of the list is drawn.
    for shown in (10..200).step_by(10) {
        browser.shows("#dead-bulk", &format!("Choose the {shown} shown")).await;
        browser.click("[data-key=dead-more]").await;
    }
    browser.shows("#dead-bulk", "Choose the 200 shown").await;
    for (id, text) in ids.iter().zip(&strings) {
        let visible = browser.call("dom.js", "shown", vec![text.as_str().into()]).await;
        let visible = visible.as_str().unwrap();
        let shown: [String; 3] = browser.run_async(OPEN, vec![id.as_str().into()]).await;
        assert_eq!(shown[0], visible);
        let written = serde_json::to_string(&text).unwrap();
        let written = browser.call("dom.js", "shown", vec![written.into()]).await;
        assert_eq!(shown[1].matches(written.as_str().unwrap()).count(), 2, "{}", shown[1]);
        assert!(shown[2].contains(visible), "{}", shown[2]);
    }
    browser.press("\u{e00c}").await;
    browser.write("#dead-subject", &strings[5]).await;
    browser.click("#dead-filter button").await;
    browser.shows("#dead-bulk", "Choose the 1 shown").await;
    assert_eq!(browser.run::<Vec<String>>(INTRUDERS, Vec::new()).await, Vec::<String>::new());
    assert_eq!(browser.alert().await, None);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_answers_and_an_operator_notes_is_text_too() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    let id = site.enqueue("invoice.created", "invoice/42", &json!({}));
    site.receiver.then(Reply::status(422).body(TRICKS[2]));
    site.call("POST", &format!("/v1/events/{id}/process"), &Value::Null);
    let note = json!({"note": TRICKS[4]});
    site.call("POST", &format!("/v1/dead-letters/{id}/requeue"), &note);
    site.receiver.then(Reply::status(422).body(TRICKS[0]));
    site.call("POST", &format!("/v1/events/{id}/process"), &Value::Null);
    browser.open(&site.url()).await;
    browser.click(&format!("[data-key='open-{id}']")).await;
    for text in [TRICKS[2], TRICKS[4], TRICKS[0]] {
        browser.shows("#event-body", text).await;
    }
    assert_eq!(browser.run::<Vec<String>>(INTRUDERS, Vec::new()).await, Vec::<String>::new());
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_would_report_a_script_that_the_page_let_in() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    let inject =
        "try { document.querySelector('#lanes').innerHTML = arguments[0]; } catch (error) { return error.name; }";
    assert_eq!(browser.run::<String>(inject, vec![TRICKS[2].into()]).await, "TypeError");
    let add = "const script = document.createElement('script'); script.append('window.ran = 1');
        try { document.body.append(script); } catch {} return window.ran ?? null;";
    assert_eq!(browser.run::<Value>(add, Vec::new()).await, Value::Null);
    assert!(browser.complaints().await.len() >= 2);
}
