//! `openapi.yaml` as far as the documents speak of it: methods, paths and names of parameters.

use std::collections::BTreeSet;

use super::markdown::{read, words};

/// A method in capitals and a path.
pub type Operation = (String, String);

/// Every operation of the contract. The generated file has two spaces for each level.
pub fn operations() -> BTreeSet<Operation> {
    let contract = read("openapi.yaml");
    let mut found = BTreeSet::new();
    let mut path = String::new();
    for line in contract.lines() {
        if let Some(name) = line.strip_prefix("  /").and_then(|rest| rest.strip_suffix(':')) {
            path = format!("/{name}");
        } else if !line.starts_with("   ") {
            path.clear();
        } else if let Some(method) = line.strip_prefix("    ").and_then(|rest| rest.strip_suffix(':'))
            && !path.is_empty()
            && ["get", "post", "put", "patch", "delete"].contains(&method)
        {
            found.insert((method.to_uppercase(), path.clone()));
        }
    }
    assert!(found.len() > 10, "openapi.yaml was not understood: {found:?}");
    found
}

/// What is wrong with a request that a document shows.
pub fn problems(method: &str, url: &str) -> Vec<String> {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let target = after_scheme.find('/').map_or("/", |at| &after_scheme[at..]);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let matches = |template: &str| {
        template.split('/').count() == path.split('/').count()
            && template
                .split('/')
                .zip(path.split('/'))
                .all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
    };
    let mut found = Vec::new();
    if !operations().iter().any(|(known, template)| known == method && matches(template)) {
        found.push(format!("{method} {path} is not in openapi.yaml"));
    }
    let contract = read("openapi.yaml");
    for name in query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split('=').next().unwrap()) {
        if !contract.contains(&format!("name: {name}\n")) {
            found.push(format!("openapi.yaml knows no parameter {name}"));
        }
    }
    found
}

/// Method and URL of a curl line.
pub fn request(line: &str) -> Option<(String, String)> {
    let words = words(line);
    if words.first()? != "curl" {
        return None;
    }
    let url = words.iter().find(|word| word.starts_with("http"))?.clone();
    let given = words.iter().position(|word| word == "-X" || word == "--request").map(|at| words[at + 1].clone());
    let has_body = words.iter().any(|word| word == "-d" || word.starts_with("--data"));
    Some((given.unwrap_or_else(|| if has_body { "POST" } else { "GET" }.to_owned()), url))
}
