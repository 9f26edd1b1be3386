//! `config.example.toml` is true: it parses, shows the defaults and every key, and its commented examples are valid.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::keys::KEYS;
use super::outbox::written::{Label, Outbox, Retention as OutboxRetention, Status};
use super::secret::{DatabaseUrl, HeaderValue, RouteUrl, Secret};
use super::settings::{Database, Log, Poller, Retention, Retry, Route, Run, Server, Settings, Telemetry, Token};
use super::{Config, Environment, Sources};
use crate::store::description::{Columns, Instants};

const EXAMPLE: &str = include_str!("../../config.example.toml");

/// Every key of an outbox once.
fn outbox() -> Outbox {
    let name = || "a".to_owned();
    let columns = Columns {
        id: name(),
        event_type: Some(name()),
        payload: name(),
        status: name(),
        attempts: name(),
        available_at: name(),
        locked_at: name(),
        created_at: name(),
        processed_at: Some(name()),
        last_error: Some(name()),
        max_attempts: Some(name()),
        subject: Some(name()),
        headers: Some(name()),
        claim_no: Some(name()),
    };
    let status = Status {
        pending: Label(name()),
        processing: Label(name()),
        completed: Label(name()),
        dead_letter: Label(name()),
        skipped: Some(Label(name())),
    };
    let day = Duration::from_hours(24);
    Outbox {
        name: name(),
        table: name(),
        order_by: Some(name()),
        max_attempts: 10,
        time_zone: name(),
        instants: Some(Instants::Text),
        lease: day,
        processed_at_on: Some(vec![name()]),
        filter: Some(name()),
        fixed_type: Some(name()),
        columns,
        status,
        retention: Some(OutboxRetention { completed: Some(day), skipped: Some(day) }),
    }
}

/// Every key once. Built without `..`, so that a new setting cannot be forgotten here.
fn everything() -> Settings {
    let retry = Retry {
        base: Some(Duration::from_secs(1)),
        factor: Some(2.0),
        max: Some(Duration::from_secs(1)),
        jitter: Some(0.1),
        schedule: Some(vec![Duration::from_secs(1)]),
        preset: Some("standard-webhooks".to_owned()),
    };
    let route = Route {
        name: "a".to_owned(),
        outbox: Some("a".to_owned()),
        types: vec!["*".to_owned()],
        url: Some(RouteUrl::from("http://a".to_owned())),
        handler: Some("log".to_owned()),
        timeout: Duration::from_secs(1),
        format: "payload".to_owned(),
        secrets: Some(vec![Secret::from("s".to_owned())]),
        secret_files: Some(vec!["f".to_owned()]),
        secrets_env: Some(vec!["e".to_owned()]),
        dead_letter_on: vec![400],
        max_defer_age: Duration::from_secs(1),
        headers: BTreeMap::from([("x-a".to_owned(), HeaderValue::from("b".to_owned()))]),
        retry: Some(retry),
    };
    let token = Token {
        name: "a".to_owned(),
        scopes: vec!["read".to_owned()],
        value: Some(Secret::from("s".to_owned())),
        value_env: Some("e".to_owned()),
        value_file: Some("f".to_owned()),
    };
    Settings {
        database_url: DatabaseUrl::default(),
        default_outbox: true,
        server: Server::default(),
        run: Run::default(),
        poller: Poller::default(),
        database: Database::default(),
        retention: Retention::default(),
        log: Log::default(),
        telemetry: Telemetry { otlp_endpoint: Some("http://a".to_owned()) },
        tokens: vec![token],
        outboxes: vec![outbox()],
        routes: vec![route],
    }
}

/// The paths of all keys below `value`; what a user names himself (headers) is no key.
fn paths(prefix: &str, value: &toml::Value, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) if !prefix.ends_with(".headers") => {
            for (name, value) in table {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                paths(&path, value, found);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for item in items {
                paths(prefix, item, found);
            }
        }
        _ => {
            found.insert(prefix.to_owned());
        }
    }
}

fn known_keys() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    paths("", &toml::Value::try_from(everything()).unwrap(), &mut known);
    known
}

/// The settings that the example shows, commented or not: each with its table's header.
fn shown_lines() -> Vec<(&'static str, &'static str)> {
    let mut header = "";
    let mut lines = Vec::new();
    for line in EXAMPLE.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)) {
        let key = line.split_once(" = ").map_or("", |(key, _)| key);
        if line.starts_with('[') {
            header = line;
            lines.push((header, ""));
        } else if !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            lines.push((header, line));
        }
    }
    lines
}

#[test]
fn the_example_shows_the_defaults() {
    assert_eq!(toml::from_str::<Settings>(EXAMPLE).unwrap(), Settings::default());
}

#[test]
fn the_example_shows_every_key_and_no_other() {
    let mut shown = BTreeSet::new();
    for (header, line) in shown_lines() {
        paths("", &format!("{header}\n{line}").parse::<toml::Table>().unwrap().into(), &mut shown);
    }
    for header in ["server", "run", "poller", "database", "retention", "log", "telemetry", "token", "route"] {
        shown.remove(header);
    }
    assert_eq!(shown, known_keys());
}

#[test]
fn every_key_outside_tokens_outboxes_and_routes_has_an_environment_variable() {
    let tables = ["token", "outbox", "route"];
    let outside = |key: &String| !tables.iter().any(|table| key.starts_with(&format!("{table}.")));
    let mut known: BTreeSet<String> = known_keys().into_iter().filter(outside).collect();
    known.extend(tables.map(str::to_owned));
    assert_eq!(KEYS.iter().map(|(key, _)| (*key).to_owned()).collect::<BTreeSet<_>>(), known);
}

#[test]
fn the_commented_examples_are_valid() {
    let alternatives = ["value ", "value_file ", "secret_files ", "secrets_env ", "fixed_type "];
    let retries: Vec<&str> =
        shown_lines().into_iter().map(|(_, line)| line).filter(|line| line.starts_with("retry ")).collect();
    assert_eq!(retries.len(), 3);
    for retry in &retries {
        let mut text = String::new();
        for (header, line) in shown_lines() {
            let other_retry = line.starts_with("retry ") && line != *retry;
            let skipped = other_retry || alternatives.iter().any(|key| line.starts_with(key));
            if !skipped {
                text.push_str(if line.is_empty() { header } else { line });
                text.push('\n');
            }
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("outboxd.toml"), text).unwrap();
        let environment = Environment::from_iter([("SCHEDULER_TOKEN", "a-long-random-text")]);
        let sources = Sources { working_folder: folder.path().to_owned(), environment, ..Sources::default() };
        let service = Config::read(&sources).unwrap().service().unwrap();
        assert_eq!(service.registry.routes().len(), 2);
        let [adopted] = service.adopted.as_slice() else { panic!("one outbox") };
        assert_eq!(adopted.registry.routes().len(), 1);
    }
}
