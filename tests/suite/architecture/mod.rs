//! The floors of the crate, kept: imports point down only, each edge stays behind its door, no file grows for ever.
//!
//! The checks read the source as text, so that they also see what a build's features hide. Test modules are left out:
//! a test may look wherever it likes. The same checks run over a small made-up crate that breaks every rule once.

mod rules;
mod source;

use std::path::{Path, PathBuf};

use source::Source;

const MAX_LINES: usize = 400;

/// Every file below the folder with this ending, with its path relative to the folder.
fn files(folder: &Path, ending: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, ending, found);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, ending, &mut found);
    found.sort();
    let name = |path: &Path| path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
    found.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn repository(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

#[test]
fn the_source_keeps_its_floors() {
    let files = files(&repository("src"), ".rs");
    assert!(files.len() > 25, "the source was not found");
    let violations: Vec<String> =
        files.iter().flat_map(|(path, text)| rules::violations(&Source::new(path, text))).collect();
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn every_module_of_the_crate_has_a_floor_and_every_floor_its_modules() {
    let library = std::fs::read_to_string(repository("src/lib.rs")).unwrap();
    let mut declared: Vec<&str> =
        library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    declared.push("main");
    declared.sort_unstable();
    let mut known: Vec<&str> = rules::modules().collect();
    known.sort_unstable();
    assert_eq!(declared, known);
}

#[test]
fn no_file_is_longer_than_four_hundred_lines() {
    let long: Vec<String> = ["src", "tests", "examples", "benches"]
        .iter()
        .flat_map(|folder| files(&repository(folder), ".rs"))
        .filter(|(_, text)| text.lines().count() > MAX_LINES)
        .map(|(path, text)| format!("{path}: {} lines", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "files that hold more than one idea: {long:?}");
}

#[test]
fn sql_files_stand_in_the_store_alone() {
    let elsewhere: Vec<String> = files(&repository("src"), ".sql")
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| !path.starts_with("store/"))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[test]
fn each_broken_rule_is_found() {
    let broken = [
        ("event/mod.rs", "use crate::store::Store;", "event (floor 1) imports store (floor 2)"),
        ("event/mod.rs", "async fn f() { tokio::task::yield_now().await }", "event uses tokio"),
        ("store/types.rs", "use crate::{event::Event, handler};", "store (floor 2) imports handler (floor 2)"),
        ("store/a/b.rs", "use super::super::super::processor::run;", "store (floor 2) imports processor (floor 3)"),
        ("api/mod.rs", "fn f() { crate::poller::start() }", "api (floor 4) imports poller (floor 4)"),
        ("api/a.rs", "use sqlx::query;", "api uses sqlx"),
        ("cli/a.rs", "const A: &str = \"SELECT 1\";", "cli holds SQL"),
        ("poller.rs", "const A: &str = r#\" UPDATE a SET b = \"c\" \"#;", "poller holds SQL"),
        ("api/a.rs", "use crate::handler::{Registry, Handler};", "api imports Handler"),
        ("telemetry.rs", "use crate::config::Settings;", "telemetry imports config"),
        ("helpers.rs", "fn f() {}", "helpers has no floor"),
        ("run.rs", "use crate::util::x;", "run imports util, which has no floor"),
        ("outcome.rs", "use outboxd::cli::main;", "outcome (floor 1) imports cli (floor 5)"),
    ];
    for (path, text, expected) in broken {
        let found = rules::violations(&Source::new(path, text));
        assert!(found.len() == 1 && found[0].contains(expected), "{path}: {text}\nfound {found:?}");
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    let sound = [
        ("processor/mod.rs", "use crate::{event::{Event, NewEvent}, store::{Store, postgres}};\nuse tokio::time;"),
        ("store/postgres/mod.rs", "use super::table::Table; use sqlx::query; const A: &str = \"SELECT 1\";"),
        (
            "event/headers.rs",
            "use super::super::json; // crate::store\n/* sqlx::query */ const A: &str = \"crate::cli\";",
        ),
        ("event/mod.rs", "fn f<'a>(c: char) -> &'a str { match c { '\"' | '\\'' => \"a\", _ => \"b\" } }"),
        ("event/mod.rs", "#[cfg(test)]\nmod tests { use crate::store::x; fn f() { sqlx::query(\"}\"); } }\nfn g() {}"),
        ("event/mod.rs", "#[cfg(test)]\n#[allow(x)]\nuse crate::store::x;\nuse crate::json;"),
        ("cli/serve.rs", "use crate::config::Settings; use crate::api;"),
        ("main.rs", "fn main() { outboxd::cli::main() }"),
        ("api/tests.rs", "use sqlx::query;"),
        ("api/mod.rs", "use axum::handler::Handler; use crate::handler::Registry;"),
    ];
    for (path, text) in sound {
        let found = rules::violations(&Source::new(path, text));
        assert!(found.is_empty(), "{path}: {text}\nfound {found:?}");
    }
}
