//! What is wrong with the settings: every problem at once, each with its key, its value and what would be valid.

use std::fmt;
use std::ops::RangeInclusive;

use figment::error::{Actual, Kind};

use super::ranges::{in_words, valid_numbers};

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    problems: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => formatter.write_str(only),
            several => {
                write!(formatter, "{} settings are not valid:", several.len())?;
                several.iter().try_for_each(|problem| write!(formatter, "\n  - {problem}"))
            }
        }
    }
}

impl ConfigError {
    /// One problem, as a sentence that names the key.
    #[must_use]
    pub fn one(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }
}

/// Problems that have been found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<String>,
}

impl Problems {
    /// Adds one: `key`, then what is the matter with it.
    pub(super) fn add(&mut self, key: &str, problem: impl fmt::Display) {
        self.found.push(format!("{key}: {problem}"));
    }

    /// Adds a value that lies outside its range.
    pub(super) fn range<T: PartialOrd + fmt::Display>(&mut self, key: &str, value: &T, valid: &RangeInclusive<T>) {
        if !valid.contains(value) {
            self.add(key, format!("{value} is out of range: valid are {}", in_words(valid)));
        }
    }

    /// Keeps a result's value, or adds its problems.
    pub(super) fn keep<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.found.extend(error.problems);
                None
            }
        }
    }

    /// The problems as an error, when there are some.
    pub(super) fn finish(self) -> Result<(), ConfigError> {
        if self.found.is_empty() { Ok(()) } else { Err(ConfigError { problems: self.found }) }
    }
}

/// Keys whose values are never repeated.
const SECRET_KEYS: [&str; 5] = ["database_url", "headers", "secrets", "url", "value"];

impl From<figment::Error> for ConfigError {
    fn from(error: figment::Error) -> Self {
        Self { problems: error.into_iter().map(|error| sentence(&error)).collect() }
    }
}

fn sentence(error: &figment::Error) -> String {
    let path = error.path.join(".");
    let source = error.metadata.as_ref().map_or_else(String::new, |metadata| format!(" ({})", metadata.name));
    let secret = error.path.iter().any(|part| SECRET_KEYS.contains(&part.as_str()));
    match &error.kind {
        // The path ends with the unknown key already.
        Kind::UnknownField(name, valid) if error.path.last() == Some(name) => unknown_key(&path, name, valid, &source),
        Kind::UnknownField(name, valid) => unknown_key(&join(&path, name), name, valid, &source),
        Kind::MissingField(name) => format!("{}: is missing{source}", join(&path, name)),
        Kind::UnknownVariant(name, valid) => {
            format!("{path}: {name:?} is not valid{source}: valid are {}", quoted(valid))
        }
        Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
            let expected = expected_in_words(&error.path, expected);
            format!("{path}: {} is not valid{source}: expected {expected}", shown(actual, secret))
        }
        kind => format!("{path}: {kind}{source}"),
    }
}

/// What would be valid, without the names of types that only a programmer knows.
fn expected_in_words(path: &[String], expected: &str) -> String {
    let number = |kind: &str| {
        // An item of a list is named by its list.
        let name = path.iter().rfind(|part| part.parse::<usize>().is_err());
        name.and_then(|name| valid_numbers(name)).unwrap_or_else(|| kind.to_owned())
    };
    match expected {
        "usize" | "u64" | "u32" | "i32" | "u16" => number("a whole number"),
        "f64" => number("a number"),
        "a sequence" => "a list in brackets".to_owned(),
        "a boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    }
}

/// An unknown key, with the nearest of the valid ones.
pub(super) fn unknown_key(path: &str, name: &str, valid: &[&str], source: &str) -> String {
    let hint = nearest(name, valid).map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    format!("{path}: unknown key{source}: {hint}Valid are {}", valid.join(", "))
}

/// The valid name that is most like this one, if any is alike at all.
pub(super) fn nearest<'valid>(name: &str, valid: &[&'valid str]) -> Option<&'valid str> {
    let likeness = |candidate: &&str| strsim::jaro_winkler(name, candidate);
    let best = valid.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.7).then_some(best)
}

/// `"a", "b"`
pub(super) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown(actual: &Actual, secret: bool) -> String {
    match actual {
        Actual::Str(_) | Actual::Char(_) | Actual::Unsigned(_) | Actual::Signed(_) | Actual::Float(_) if secret => {
            "a value (not shown)".to_owned()
        }
        Actual::Str(text) => format!("{text:?}"),
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Bool(flag) => flag.to_string(),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}
