//! The documents are true: what README, CONTRIBUTING, CHANGELOG and `docs/` mention exists, and what they show works.

mod contract;
mod markdown;

use std::path::Path;
use std::process::{Command, Output};

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use crate::support::postgres::fresh_database;
use markdown::{Document, arguments, documents, read, repository};

/// Folders and files by which inline code is known to name a path.
const PATHS: [&str; 10] = [
    "src/",
    "tests/",
    "docs/",
    "deploy/",
    "examples/",
    "scripts/",
    "migrations/",
    ".ci/",
    "config.example",
    "openapi.yaml",
];

/// A secret of the form that receivers share.
const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn outboxd(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_outboxd"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs([("APP_TOKEN", "an-application"), ("OPERATOR_TOKEN", "an-operator"), ("BILLING_SECRET", SECRET)])
        .output()
        .unwrap()
}

fn readme() -> Document {
    documents().into_iter().find(|document| document.name == "README.md").unwrap()
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for document in documents() {
        for link in document.links().into_iter().filter(|link| !link.starts_with("https://")) {
            seen += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = document.resolve(path);
            let known = || Document { name: link.clone(), text: std::fs::read_to_string(&target).unwrap() }.anchors();
            if !target.exists() || !(anchor.is_empty() || known().contains(&anchor.to_owned())) {
                broken.push(format!("{}: {link}", document.name));
            }
        }
    }
    assert!(seen > 10);
    assert_none(&broken);
}

#[test]
fn every_path_that_is_mentioned_exists() {
    let mut missing = Vec::new();
    for document in documents() {
        let mentioned =
            document.shell_lines().into_iter().filter_map(|line| Some(markdown::words(&line).first()?.clone()));
        for path in mentioned.filter(|word| PATHS.iter().any(|start| word.starts_with(start))) {
            if !repository().join(&path).exists() {
                missing.push(format!("{}: {path}", document.name));
            }
        }
    }
    assert_none(&missing);
}

#[test]
fn every_command_that_is_shown_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let understands = |arguments: &[String]| {
        // With --help at the end everything before it is parsed, and nothing is done.
        let words: Vec<&str> = arguments.iter().map(String::as_str).chain(["--help"]).collect();
        outboxd(folder.path(), &words).status.success()
    };
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    for document in documents() {
        shown.extend(document.commands().into_iter().map(|command| (document.name.clone(), command)));
    }
    let unit = "deploy/systemd/outboxd-process.service";
    let start = read(unit).lines().find_map(|line| arguments(line.strip_prefix("ExecStart=")?)).unwrap();
    shown.push((unit.to_owned(), start));
    assert!(shown.len() > 15, "{shown:?}");
    let wrong: Vec<String> =
        shown.iter().filter(|(_, command)| !understands(command)).map(|shown| format!("{shown:?}")).collect();
    assert_none(&wrong);

    for invented in ["outboxd fly", "outboxd serve --sideways", "outboxd dead-letters fly"] {
        assert!(!understands(&arguments(invented).unwrap()), "{invented} was understood");
    }
}

#[test]
fn every_request_that_is_shown_is_in_the_contract() {
    let mut shown: Vec<(String, String)> = Vec::new();
    for document in documents() {
        shown.extend(document.shell_lines().iter().filter_map(|line| contract::request(line)));
    }
    assert!(shown.len() >= 5, "{shown:?}");
    let manifest = read("deploy/kubernetes/cronjob.yaml");
    let url = manifest.lines().find_map(|line| line.trim().strip_prefix("- http://")).unwrap();
    shown.push(("POST".to_owned(), format!("http://{url}")));
    let wrong: Vec<String> = shown.iter().flat_map(|(method, url)| contract::problems(method, url)).collect();
    assert_none(&wrong);
    assert_eq!(contract::problems("PUT", "http://host/v1/fly?speed=1").len(), 2);
}

#[test]
fn the_readme_lists_every_endpoint_and_no_other() {
    let mut listed: Vec<(String, String)> = Vec::new();
    for row in read("README.md").lines().filter_map(|line| line.strip_prefix("| ")) {
        let Some((method, rest)) = row.split_once(' ') else { continue };
        if ["GET", "POST"].contains(&method) && rest.starts_with('/') {
            listed.push((method.to_owned(), rest.split(' ').next().unwrap().to_owned()));
        }
    }
    let described = Some(("GET".to_owned(), "/openapi.yaml".to_owned()));
    let same_by_get = Some(("GET".to_owned(), "/v1/process".to_owned()));
    let listed: std::collections::BTreeSet<_> =
        listed.into_iter().chain(described.clone()).chain(same_by_get).collect();
    let known: std::collections::BTreeSet<_> = contract::operations().into_iter().chain(described).collect();
    assert_eq!(listed, known);
}

#[test]
fn every_settings_example_is_accepted() {
    let mut seen = 0;
    let mut refused = Vec::new();
    let mut check = |name: &str, settings: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("example.toml"), settings).unwrap();
        let output = outboxd(folder.path(), &["config", "check", "--config", "example.toml"]);
        if !output.status.success() {
            refused.push(format!("{name}: {}\n{settings}", String::from_utf8_lossy(&output.stderr)));
        }
    };
    for document in documents() {
        for block in document.blocks("toml") {
            seen += 1;
            check(&document.name, &block.code);
        }
    }
    assert!(seen >= 4);
    check("invented", "[server]\nsideways = true\n");
    assert_eq!(refused.len(), 1, "\n{}", refused.join("\n"));
    assert!(refused[0].contains("sideways"), "{}", refused[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sql_example_writes_events() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = fresh_database().await;
    let sqlite = format!("sqlite://{}", folder.path().join("outboxd.db").display());
    for url in [&postgres, &sqlite] {
        let output = outboxd(folder.path(), &["migrate", "--database-url", url]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut on_postgres = PgConnection::connect(&postgres).await.unwrap();
    let mut on_sqlite = SqliteConnection::connect(&sqlite).await.unwrap();
    sqlx::raw_sql("CREATE TABLE invoice (id integer, amount integer)").execute(&mut on_postgres).await.unwrap();
    let readme = readme();
    for block in readme.blocks("sql") {
        let sql = sqlx::raw_sql(AssertSqlSafe(block.code.clone()));
        if block.code.contains("outbox_event") {
            sql.execute(&mut on_sqlite).await.unwrap();
        } else {
            sql.execute(&mut on_postgres).await.unwrap();
        }
    }
    let count = "SELECT count(*) FROM outbox.event WHERE event_type = 'invoice.created' AND status = 'pending'";
    let written: i64 = sqlx::query_scalar(count).fetch_one(&mut on_postgres).await.unwrap();
    assert_eq!(written, 3);
    let count = "SELECT count(*) FROM outbox_event WHERE event_type = 'invoice.created' AND status = 'pending'";
    let written: i64 = sqlx::query_scalar(count).fetch_one(&mut on_sqlite).await.unwrap();
    assert_eq!(written, 1);
}

#[test]
fn the_example_that_verifies_a_signature_tells_right_from_wrong() {
    let readme = readme();
    let blocks = readme.blocks("python");
    let [block] = blocks.as_slice() else { panic!("one example in Python") };
    let check = format!(
        r#"{}
time.time = lambda: 1649367553
headers = {{
    "webhook-id": "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
    "webhook-timestamp": "1649367553",
    "webhook-signature": "v1,c3VycHJpc2U= v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
}}
body = b'{{"email":"test@example.com","username":"test_user"}}'
assert verify("{SECRET}", headers, body)
assert not verify("{SECRET}", headers, body + b" ")
time.time = lambda: 1649369999
assert not verify("{SECRET}", headers, body)
"#,
        block.code
    );
    let output =
        Command::new("python3").args(["-c", &check]).output().expect("python3 is installed (scripts/test does)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_changelog_has_a_place_for_what_comes_and_names_this_version() {
    let changelog = read("CHANGELOG.md");
    for heading in ["## Unreleased".to_owned(), format!("## {}", env!("CARGO_PKG_VERSION"))] {
        assert!(changelog.lines().any(|line| line == heading), "{heading}");
    }
}

#[test]
fn no_document_promises_what_nobody_can() {
    for document in documents() {
        let text = document.text.to_lowercase().replace('-', " ");
        assert!(!text.contains("exactly once"), "{}", document.name);
    }
}
