//! The rules themselves, over one file's words.

use super::source::{Source, Word};

/// The floors from the ground up; who may import whom within a floor is said by [`may_import`].
const FLOORS: [&[&str]; 5] = [
    &["event", "lease", "outcome", "retry", "budget", "run", "retention", "json", "metrics", "span", "timestamp"],
    &["store", "handler", "otlp"],
    &["processor"],
    &["api", "poller", "housekeeping", "sampler"],
    &["cli", "config", "telemetry", "main"],
];

/// Crates that the words and rules on the ground floor do without: no runtime, no database, no network.
const NOT_ON_THE_GROUND: [&str; 6] = ["tokio", "tokio_util", "sqlx", "axum", "hyper", "reqwest"];

/// How a statement begins. Keywords in capitals are how this repository writes SQL.
const STATEMENTS: [&str; 6] = ["SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", "WITH ", "CREATE TABLE "];

/// Every module that has a floor.
pub fn modules() -> impl Iterator<Item = &'static str> {
    FLOORS.iter().flat_map(|floor| floor.iter().copied())
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module)).map(|index| index + 1)
}

fn may_import(from: usize, to: usize) -> bool {
    // The ground floor's words are made of each other, and the top floor puts itself together; elsewhere neighbours
    // stay apart.
    to < from || (to == from && (from == 1 || from == 5))
}

/// What this file does that its place forbids.
pub fn violations(source: &Source) -> Vec<String> {
    if source.is_test() || source.module() == "lib" {
        return Vec::new();
    }
    let module = source.module();
    let Some(own_floor) = floor(module) else {
        return vec![format!("{}: {module} has no floor", source.path)];
    };
    let mut found = imports(source, module, own_floor);
    for name in source.crates() {
        let forbidden = (own_floor == 1 && NOT_ON_THE_GROUND.contains(&name)) || (name == "sqlx" && module != "store");
        if forbidden {
            found.push(format!("{module} uses {name}"));
        }
    }
    if module == "api" && source.names_under("handler").contains(&"Handler".to_owned()) {
        found.push("api imports Handler: only the processor runs handlers".to_owned());
    }
    let begins_statement = |text: &str| STATEMENTS.iter().any(|start| text.trim_start().starts_with(start));
    let holds_sql = source.words().iter().any(|word| matches!(word, Word::Text(text) if begins_statement(text)));
    if holds_sql && module != "store" {
        found.push(format!("{module} holds SQL"));
    }
    found.sort();
    found.dedup();
    found.into_iter().map(|what| format!("{}: {what}", source.path)).collect()
}

fn imports(source: &Source, module: &str, own_floor: usize) -> Vec<String> {
    let mut found = Vec::new();
    for other in source.imports().iter().filter(|other| *other != module) {
        let Some(other_floor) = floor(other) else {
            found.push(format!("{module} imports {other}, which has no floor"));
            continue;
        };
        // The interface shows what the sampler keeps; the sampler knows nothing of it.
        let is_shown = (module, other.as_str()) == ("api", "sampler");
        if !may_import(own_floor, other_floor) && !is_shown {
            found.push(format!("{module} (floor {own_floor}) imports {other} (floor {other_floor})"));
        } else if other == "config" && !["cli", "main"].contains(&module) {
            found.push(format!("{module} imports config: it owns its settings, config composes them"));
        }
    }
    found
}
