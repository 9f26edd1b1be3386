//! The rules behind the page: the verdict over figures, and payloads that keep their text. Run in the browser, as they are.

use serde_json::{Value, json};

use super::browser::Browser;
use super::site::Site;

const NOW: i64 = 1_764_547_200_000;

fn ago(minutes: i64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp((NOW - minutes * 60_000) / 1000).unwrap();
    at.format(&time::format_description::well_known::Rfc3339).unwrap()
}

fn lane(event_type: &str, due: u32, oldest_minutes: Option<i64>, dead_letter: u32) -> Value {
    json!({
        "outbox": "default", "type": event_type, "due": due, "scheduled": 0, "processing": 0, "dead_letter": dead_letter,
        "oldest_due_age_ms": oldest_minutes.map(|minutes| minutes * 60_000), "routed": true, "capped": false,
    })
}

fn run(minutes_ago: i64, stop_reason: &str) -> Value {
    json!({"state": "finished", "stop_reason": stop_reason, "started_at": ago(minutes_ago), "duration_ms": 10, "unfit_types": []})
}

fn picture(lanes: &[Value], last_run: &Value) -> Value {
    json!({
        "stats": {"lanes": lanes, "last_run": last_run, "last_hour": [], "uncounted": []},
        "problem": null, "readiness": null, "now": NOW, "frozenFor": 0,
    })
}

fn changed(mut picture: Value, pointer: &str, value: Value) -> Value {
    *picture.pointer_mut(pointer).unwrap() = value;
    picture
}

/// Each picture with the level, the rule and a part of what is said.
fn cases() -> Vec<(Value, &'static str, &'static str, &'static str)> {
    let flowing = || picture(&[lane("a", 3, Some(0), 0)], &run(1, "drained"));
    let minute = |retried: u32, completed: u32| {
        json!([{"outbox": "default", "minute": ago(3), "completed": completed, "retried": retried, "deferred": 0,
                "skipped": 0, "dead_lettered": 0}])
    };
    let unrouted = changed(lane("a", 9, Some(5000), 0), "/routed", false.into());
    let problem = |kind: &str| changed(flowing(), "/problem", json!({"kind": kind, "message": "the server's words"}));
    vec![
        (flowing(), "ok", "flow", "Events flow"),
        (picture(&[], &run(1, "drained")), "ok", "flow", "Events flow"),
        (
            picture(&[lane("a", 7, Some(12), 0)], &run(12, "drained")),
            "bad",
            "nobody-calls",
            "nothing has called for 11 minutes",
        ),
        (picture(&[lane("a", 7, Some(12), 0)], &Value::Null), "bad", "nobody-calls", "nothing has ever called"),
        (picture(&[lane("a", 7, Some(12), 0)], &run(1, "budget")), "bad", "late", "due for 12 minutes"),
        (picture(&[lane("a", 7, Some(1), 0)], &run(1, "drained")), "ok", "flow", "Events flow"),
        (picture(&[lane("a", 0, None, 4)], &run(1, "drained")), "warn", "dead-letters", "4 were given up"),
        (picture(&[lane("a", 0, None, 1)], &run(1, "drained")), "warn", "dead-letters", "1 was given up"),
        (picture(std::slice::from_ref(&unrouted), &run(1, "drained")), "warn", "unrouted", "1 type of events waits"),
        (picture(&[unrouted, lane("b", 2, Some(9), 0)], &run(9, "drained")), "bad", "nobody-calls", "Events are due"),
        (picture(&[], &run(180, "drained")), "warn", "quiet", "nothing has called for 2 hours"),
        (picture(&[], &Value::Null), "warn", "quiet", "nothing has ever called"),
        (changed(flowing(), "/stats/last_hour", minute(30, 2)), "bad", "failing", "Deliveries fail"),
        (changed(flowing(), "/stats/last_hour", minute(2, 0)), "ok", "flow", "Events flow"),
        (changed(flowing(), "/stats/last_hour", minute(30, 300)), "ok", "flow", "Events flow"),
        (changed(flowing(), "/frozenFor", 240_000.into()), "bad", "frozen", "stood still for 4 minutes"),
        (changed(flowing(), "/stats/uncounted", json!(["app"])), "bad", "uncounted", "Outbox app cannot be read"),
        (problem("token-missing"), "away", "token-missing", "A token is needed"),
        (problem("token-unknown"), "away", "token-unknown", "does not know this token"),
        (problem("scope-missing"), "away", "scope-missing", "may not read"),
        (problem("database"), "bad", "database", "The database is away"),
        (problem("unreachable"), "bad", "unreachable", "The server does not answer"),
        (problem("stopping"), "warn", "stopping", "shutting down"),
        (problem("defect"), "bad", "defect", "cannot be read"),
        (
            changed(flowing(), "/readiness", json!({"kind": "database", "message": "gone"})),
            "bad",
            "database",
            "The database is away",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verdict_names_what_is_wrong_first_and_says_what_to_do() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    for (picture, level, kind, words) in cases() {
        let verdict = browser.call("verdict.js", "judge", vec![picture.clone()]).await;
        assert_eq!((&verdict["level"], &verdict["kind"]), (&level.into(), &kind.into()), "{picture}\n{verdict}");
        assert!(verdict["headline"].as_str().unwrap().contains(words), "{verdict}");
        let advice = verdict["todo"].as_array().unwrap().len() + verdict["actions"].as_array().unwrap().len();
        assert!(level == "ok" || kind == "stopping" || kind == "defect" || advice > 0, "{verdict}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_over_several_outboxes_names_the_one_that_its_button_leads_to() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    let elsewhere = |lane, name: &str| changed(lane, "/outbox", name.into());
    let lanes = [
        lane("a", 0, None, 1),
        elsewhere(lane("b", 0, None, 7), "orders"),
        elsewhere(lane("c", 2, Some(0), 0), "bills"),
    ];
    let mut picture = picture(&lanes, &run(1, "drained"));
    for (chosen, place) in [("default", "default"), ("orders", "orders"), ("bills", "orders")] {
        picture["chosen"] = chosen.into();
        let verdict = browser.call("verdict.js", "judge", vec![picture.clone()]).await;
        assert_eq!(verdict["places"]["dead-letters"], place, "{verdict}");
        assert!(verdict["text"].to_string().contains("7 in outbox orders, 1 in outbox default"), "{verdict}");
    }
    picture["stats"]["lanes"] = json!([lanes[0]]);
    let verdict = browser.call("verdict.js", "judge", vec![picture]).await;
    assert_eq!(verdict["places"]["dead-letters"], Value::Null, "a single outbox needs no name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_just_made_ends_the_silence_before_it_is_counted() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    let mut picture = picture(&[lane("a", 7, Some(12), 0)], &Value::Null);
    let kind = async |picture: &Value| browser.call("verdict.js", "judge", vec![picture.clone()]).await["kind"].take();
    picture["stats"]["as_of"] = ago(1).into();
    assert_eq!(kind(&picture).await, "nobody-calls");
    picture["run"] = run(0, "drained");
    assert_eq!(kind(&picture).await, "late", "the list of runs is newer than the figures");
    picture["ownRun"] = json!({"state": "running"});
    assert_eq!(kind(&picture).await, "running");
    picture["ownRun"] = run(0, "drained");
    assert_eq!(kind(&picture).await, "counting", "the figures are older than the run's end");
    picture["ownRun"] = run(2, "drained");
    assert_eq!(kind(&picture).await, "late", "the figures are newer");
}

/// Minutes of an outbox: how long ago, how many were completed, are to be retried, were given up.
fn hour(outbox: &str, minutes: &[(i64, u32, u32, u32)]) -> Value {
    let minute = |&(minutes_ago, completed, retried, dead_lettered): &(i64, u32, u32, u32)| {
        json!({"outbox": outbox, "minute": ago(minutes_ago), "completed": completed, "retried": retried, "deferred": 0,
               "skipped": 0, "dead_lettered": dead_lettered})
    };
    minutes.iter().map(minute).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_that_fail_are_judged_by_the_newest_minute_too_and_say_who_tries_again() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    let failing = |last_run: &Value, minutes: &[(i64, u32, u32, u32)]| {
        changed(picture(&[lane("a", 0, None, 4)], last_run), "/stats/last_hour", hour("default", minutes))
    };
    let cases = [
        (failing(&run(1, "drained"), &[(3, 0, 30, 0)]), "failing", r#"["waiting"]"#, "tried again by the next runs"),
        (failing(&run(9, "drained"), &[(3, 0, 30, 0)]), "failing", r#"["waiting","process"]"#, "called for 8 minutes"),
        (failing(&run(1, "drained"), &[(3, 0, 9, 2)]), "failing", r#"["waiting","dead-letters"]"#, "2 of these events"),
        (
            failing(&run(1, "drained"), &[(5, 0, 30, 0), (2, 6, 0, 0)]),
            "dead-letters",
            r#"["dead-letters"]"#,
            "decision",
        ),
        (failing(&run(1, "drained"), &[(5, 9, 0, 0), (2, 0, 30, 0)]), "failing", r#"["waiting"]"#, "30 of the 39"),
        (failing(&run(1, "drained"), &[(20, 0, 30, 0)]), "dead-letters", r#"["dead-letters"]"#, "decision"),
    ];
    for (picture, kind, actions, words) in cases {
        let verdict = browser.call("verdict.js", "judge", vec![picture.clone()]).await;
        assert_eq!((&verdict["kind"], verdict["actions"].to_string().as_str()), (&kind.into(), actions), "{verdict}");
        assert!(verdict.to_string().contains(words), "{words}: {verdict}");
    }
    let mut two = failing(&run(1, "drained"), &[]);
    two["stats"]["last_hour"] = hour("orders", &[(2, 0, 5, 0)]);
    two["stats"]["outboxes"] = json!(["default", "orders"]);
    two["stats"]["last_hour"]
        .as_array_mut()
        .unwrap()
        .extend(hour("default", &[(1, 300, 0, 0)]).as_array().unwrap().clone());
    let verdict = browser.call("verdict.js", "judge", vec![two]).await;
    assert_eq!((&verdict["kind"], &verdict["places"]["waiting"]), (&"failing".into(), &"orders".into()), "{verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_route_takes_is_not_counted_as_due_and_no_button_promises_a_delivery() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    let unrouted = changed(lane("x", 3, Some(50), 0), "/routed", false.into());
    let stalled = picture(&[lane("a", 35, Some(12), 0), unrouted], &run(12, "drained"));
    let verdict = browser.call("verdict.js", "judge", vec![stalled]).await.to_string();
    assert!(verdict.contains("35 events are due. 3 besides wait for a route."), "{verdict}");
    assert!(verdict.contains("spends one of its attempts"), "{verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_shown_as_it_was_written() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    let payloads = [
        r#"{"n":9007199254740993,"a":1.0,"a":2e400}"#,
        r#"{"payload":{"payload":1},"text":"\"payload\":2 , } ] \\"}"#,
        "[1, [ ] ,{ }, \"a\\u0000b\\ud800\", -0.0]",
        "\"only text, with : and {\"",
        "null",
        "12345678901234567890",
    ];
    for payload in payloads {
        let event = format!(
            "{{\"id\":\"1\", \"last_error\":\"\\\"payload\\\":\\\"no\\\"\" ,\"payload\":{payload},\"attempts_log\":[]}}"
        );
        let found = browser.call("json_text.js", "memberText", vec![event.into(), "payload".into()]).await;
        assert_eq!(found, payload);
        let indented = browser.call("json_text.js", "indented", vec![payload.into()]).await;
        let indented = indented.as_str().unwrap();
        // Inside these texts spaces do not matter, so that what is left must be the same.
        let bare = |text: &str| text.replace([' ', '\n'], "");
        assert_eq!(bare(indented), bare(payload));
        serde_json::from_str::<Box<serde_json::value::RawValue>>(indented).unwrap();
    }
    let without = browser.call("json_text.js", "memberText", vec![r#"{"id":"1"}"#.into(), "payload".into()]).await;
    assert_eq!(without, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_that_nobody_sees_are_shown() {
    let site = Site::start().await;
    let browser = Browser::start().await;
    browser.open(&site.url()).await;
    let shown = browser.call("dom.js", "shown", vec!["a\u{202e}b\u{200b}c\u{0}\nd ü 🦀".into()]).await;
    assert_eq!(shown, "a\\u{202e}b\\u{200b}c\\u{0}\nd ü 🦀");
}
