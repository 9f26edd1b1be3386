//! What a real server exports after real outcomes, and everything that speaks of it: the README's table, the alerts, the
//! dashboard, Prometheus' own linter.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use outboxd::metrics::{Kind, METRICS, MOST_TYPES};
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};

use crate::support::postgres::fresh_database;
use crate::support::program::{Program, Running, http};
use crate::support::receiver::{Receiver, Reply};

const ALERTS: &str = "deploy/prometheus/alerts.yml";
const DASHBOARD: &str = "deploy/grafana/outboxd.json";

/// A server whose receiver plays these replies, on SQLite.
async fn served(replies: Vec<Reply>) -> (Program, Running, SocketAddr, Receiver) {
    let receiver = Receiver::playing(replies).await;
    let settings = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[[route]]\nname = \"all\"\ntypes = [\"routed.a\", \"later.*\"]\nurl = \"{}\"\ndead_letter_on = [400]\n",
        receiver.url("/in")
    );
    let program = Program::migrated(&settings);
    let running = program.start(&["serve"]);
    let address = running.ready_address();
    (program, running, address, receiver)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn metrics(address: SocketAddr) -> String {
    let (status, answer) = http(address, "GET", "/metrics", "");
    assert_eq!(status, 200, "{answer}");
    body(&answer).to_owned()
}

fn enqueue(address: SocketAddr, event_type: &str) {
    let (status, answer) = http(address, "POST", "/v1/events", &format!(r#"{{"type":"{event_type}","payload":1}}"#));
    assert_eq!(status, 201, "{answer}");
}

/// Every metric's name and kind, as the text declares them.
fn exported(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

/// The value of a series, written as in the text.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
}

/// The same, of a series that counts.
fn count(text: &str, series: &str) -> i64 {
    value(text, series).round() as i64
}

/// What an expression names.
fn named(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("outbox_")).map(base).collect()
}

/// The metric that a series of a histogram belongs to.
fn base(series: &str) -> String {
    let stems = ["_bucket", "_sum", "_count"].into_iter().filter_map(|end| series.strip_suffix(end));
    let is_histogram =
        |stem: &&str| METRICS.iter().any(|metric| metric.name == *stem && metric.kind == Kind::Histogram);
    stems.filter(|stem| is_histogram(stem)).map(str::to_owned).next().unwrap_or_else(|| series.to_owned())
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

/// Every text under this key, however deep.
fn texts_under(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner {
                    Value::String(text) if name == key => found.push(text.clone()),
                    _ => texts_under(inner, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts_under(item, key, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_exports_every_metric_after_a_run_with_all_outcomes_and_the_linter_is_content() {
    let replies = [200, 500, 400].map(Reply::status).to_vec();
    let (_program, running, address, _receiver) = served(replies).await;
    let at_start = metrics(address);
    assert_eq!(count(&at_start, r#"outbox_runs_total{trigger="http",stop_reason="error"}"#), 0);
    assert_eq!(count(&at_start, "outbox_leases_lost_total"), 0);
    assert_eq!(count(&at_start, "outbox_queue_wait_seconds_count"), 0);
    assert_eq!(count(&at_start, r#"outbox_attempts_total{type="routed.a",outcome="complete"}"#), 0);
    assert_eq!(count(&at_start, r#"outbox_events{outbox="default",type="routed.a",state="due"}"#), 0);
    for _ in 0..3 {
        enqueue(address, "routed.a");
    }
    let (status, report) = http(address, "POST", "/v1/process?max_runtime_ms=60000", "");
    assert_eq!(status, 200, "{report}");
    assert_eq!(http(address, "GET", "/nowhere", "").0, 404);

    let text = metrics(address);
    let kinds = exported(&text);
    let known: BTreeMap<&str, &str> = METRICS.iter().map(|metric| (metric.name, metric.kind.as_str())).collect();
    assert_eq!(kinds, known);
    for (series, expected) in [
        (r#"outbox_attempts_total{type="routed.a",outcome="complete"}"#, 1),
        (r#"outbox_attempts_total{type="routed.a",outcome="retry"}"#, 1),
        (r#"outbox_attempts_total{type="routed.a",outcome="dead_letter"}"#, 1),
        (r#"outbox_attempts_total{type="routed.a",outcome="defer"}"#, 0),
        (r#"outbox_dead_letters_total{type="routed.a",reason="permanent"}"#, 1),
        (r#"outbox_runs_total{trigger="http",stop_reason="drained"}"#, 1),
        (r#"outbox_http_requests_total{route="/v1/events",method="POST",status="201"}"#, 3),
        (r#"outbox_http_requests_total{route="none",method="GET",status="404"}"#, 1),
        (r#"outbox_attempt_duration_seconds_bucket{le="600"}"#, 3),
        (r#"outbox_queue_wait_seconds_bucket{le="86400"}"#, 3),
        ("outbox_run_duration_seconds_count", 1),
        ("outbox_inflight", 0),
        (&format!(r#"outbox_build_info{{version="{}"}}"#, env!("CARGO_PKG_VERSION")), 1),
    ] {
        assert_eq!(count(&text, series), expected, "{series}");
    }
    assert!(value(&text, "outbox_stats_last_success_timestamp_seconds") > 1.7e9);
    assert!(value(&text, r#"outbox_pool_max_connections{outbox="default"}"#) > 0.0);

    let complaints = promtool(&["check", "metrics"], &text);
    assert_eq!(complaints, "", "Prometheus' linter complains");
    assert!(running.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_gauges_and_the_hundred_and_first_type_has_no_label_of_its_own() {
    let (program, running, address, _receiver) = served(Vec::new()).await;
    let event = |number: usize| format!(r#"{{"type":"t{number:03}","payload":1}}"#);
    let events: Vec<String> = (0..MOST_TYPES + 20).map(event).collect();
    let (status, answer) =
        http(address, "POST", "/v1/events/batch", &format!(r#"{{"events":[{}]}}"#, events.join(",")));
    assert_eq!(status, 201, "{answer}");
    assert!(running.terminate().success());
    // The next one has counted nothing yet.
    let running = program.start(&["serve"]);
    let text = metrics(running.ready_address());
    let labels = text.lines().filter(|line| line.starts_with("outbox_events{") && line.contains(r#"state="due""#));
    assert_eq!(labels.count(), MOST_TYPES + 1);
    assert_eq!(count(&text, r#"outbox_events{outbox="default",type="t000",state="due"}"#), 1);
    assert_eq!(
        count(&text, r#"outbox_events{outbox="default",type="_other",state="due"}"#),
        21,
        "a route's type has one"
    );
    assert_eq!(count(&text, r#"outbox_unrouted_due_events{outbox="default"}"#), MOST_TYPES as i64 + 20);
    assert!(value(&text, r#"outbox_oldest_due_age_seconds{outbox="default",type="_other"}"#) >= 0.0);
    assert!(running.terminate().success());
}

/// Runs Prometheus' own tool. Its absence is a failure.
fn promtool(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed (scripts/test does)");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    said
}

#[test]
fn prometheus_understands_the_alerts_and_they_fire_when_they_should() {
    let said = promtool(&["check", "rules", repository(ALERTS).to_str().unwrap()], "");
    assert!(said.contains("SUCCESS"), "{said}");
    let said = promtool(&["test", "rules", repository("tests/suite/alerts.yml").to_str().unwrap()], "");
    assert!(said.contains("SUCCESS"), "{said}");
}

#[test]
fn alerts_and_dashboard_name_only_metrics_that_are_exported() {
    let known: BTreeSet<String> = METRICS.iter().map(|metric| metric.name.to_owned()).collect();
    let alerts = named(&read(ALERTS));
    assert!(alerts.len() >= 7, "{alerts:?}");
    assert!(alerts.is_subset(&known), "{alerts:?}");
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let mut expressions = Vec::new();
    texts_under(&dashboard, "expr", &mut expressions);
    texts_under(&dashboard, "query", &mut expressions);
    let shown: BTreeSet<String> = expressions.iter().flat_map(|expression| named(expression)).collect();
    assert_eq!(shown, known, "the dashboard shows each of them");
}

#[test]
fn every_alert_says_what_to_do() {
    let alerts = read(ALERTS);
    let count = |text: &str| alerts.matches(text).count();
    assert!(count("- alert: ") >= 6);
    assert_eq!(count("- alert: "), count("summary: "));
    assert_eq!(count("- alert: "), count("description: "));
}

#[test]
fn the_readme_lists_every_metric_with_its_kind_labels_and_meaning() {
    let rows: Vec<String> =
        read("README.md").lines().filter(|line| line.starts_with("| `outbox_")).map(str::to_owned).collect();
    let expected: Vec<String> = METRICS
        .iter()
        .map(|metric| {
            let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
            let kind = metric.kind.as_str();
            format!("| `{}` | {kind} | {labels} | {} |", metric.name, metric.help).replace("|  |", "| |")
        })
        .collect();
    assert_eq!(rows, expected, "\n{}", expected.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_wrong_is_counted() {
    let url = fresh_database().await;
    let settings = format!(
        "database_url = \"{url}\"\n[server]\nlisten = \"127.0.0.1:0\"\npublic_metrics = true\n[[token]]\nname = \"t\"\n\
         scopes = [\"read\"]\nvalue = \"secret-of-the-token\"\n[poller]\ninterval = \"100ms\"\n[[route]]\nname = \"all\"\n\
         types = [\"a\"]\nhandler = \"discard\"\n"
    );
    let program = Program::migrated(&settings);
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let abandoned = "INSERT INTO outbox.event (event_type, payload, status, attempts, max_attempts, locked_at, lease_until, claim_no)
                     SELECT 'a', '{}', 'processing', n, 2, now() - interval '1 hour', now() - interval '1 minute', 1
                     FROM generate_series(0, 1) AS n";
    sqlx::raw_sql(abandoned).execute(&mut connection).await.unwrap();
    let running = program.start(&["serve"]);
    let address = running.ready_address();
    for path in ["/v1/stats", "/v1/runs", "/livez"] {
        http(address, "GET", path, "");
    }
    let settled = "SELECT count(*) FROM outbox.event WHERE processed_at IS NOT NULL";
    while sqlx::query_scalar::<_, i64>(settled).fetch_one(&mut connection).await.unwrap() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let text = loop {
        let text = metrics(address);
        if value(&text, r#"outbox_attempts_total{type="a",outcome="complete"}"#) > 0.0 {
            break text;
        }
    };
    for (series, expected) in [
        ("outbox_leases_reaped_total", 2),
        (r#"outbox_dead_letters_total{type="a",reason="claim_expired"}"#, 1),
        (r#"outbox_dead_letters_total{type="a",reason="permanent"}"#, 0),
        (r#"outbox_auth_failures_total{reason="missing_token"}"#, 2),
        (r#"outbox_auth_failures_total{reason="unknown_token"}"#, 0),
    ] {
        assert_eq!(count(&text, series), expected, "{series}\n{text}");
    }
    assert!(!text.contains("secret-of-the-token"));
    assert!(running.terminate().success());
    let minutes = "SELECT sum(completed)::text || ' ' || sum(retried) || ' ' || sum(dead_lettered) FROM outbox.minute";
    let minutes: String = sqlx::query_scalar(minutes).fetch_one(&mut connection).await.unwrap();
    assert_eq!(minutes, "1 1 1");
}
