//! The process's environment as a value: read once, handed down, and replaceable in tests.

use std::collections::BTreeMap;
use std::fs;

use super::problem::ConfigError;

/// Environment variables. Names and values that are not UTF-8 are left out: no setting can be one.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let readable =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: readable.collect() }
    }

    /// One variable.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// All variables whose names begin so, each with the rest of its name.
    pub(super) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &str, &str)> {
        self.variables
            .iter()
            .filter_map(move |(name, value)| Some((name.as_str(), name.strip_prefix(prefix)?, value.as_str())))
    }

    /// The secret in a variable that must be set.
    pub(super) fn secret(&self, key: &str, name: &str) -> Result<String, ConfigError> {
        let value = self.get(name).ok_or_else(|| {
            ConfigError::one(format!("{key}: the environment variable {name} is not set: set it or name another one"))
        })?;
        usable(value).ok_or_else(|| {
            ConfigError::one(format!("{key}: the environment variable {name} is empty: a secret must not be"))
        })
    }
}

impl<Name: Into<String>, Value: Into<String>> FromIterator<(Name, Value)> for Environment {
    fn from_iter<Pairs: IntoIterator<Item = (Name, Value)>>(pairs: Pairs) -> Self {
        Self { variables: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

/// The secret in a file.
pub(super) fn secret_in_file(key: &str, path: &str) -> Result<String, ConfigError> {
    let text = fs::read_to_string(path)
        .map_err(|error| ConfigError::one(format!("{key}: the file {path:?} cannot be read: {error}")))?;
    usable(&text).ok_or_else(|| ConfigError::one(format!("{key}: the file {path:?} is empty: a secret must not be")))
}

/// A secret without the newline that editors and `echo` leave at its end; `None` when nothing remains.
pub(super) fn usable(secret: &str) -> Option<String> {
    let line = secret.strip_suffix('\n').unwrap_or(secret);
    let line = line.strip_suffix('\r').unwrap_or(line);
    (!line.trim().is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trailing_newline_is_no_part_of_a_secret() {
        assert_eq!(usable("s3cret\n").as_deref(), Some("s3cret"));
        assert_eq!(usable("s3cret\r\n").as_deref(), Some("s3cret"));
        assert_eq!(usable("s3cret").as_deref(), Some("s3cret"));
        assert_eq!((usable(""), usable("\n"), usable("  \n")), (None, None, None));
    }
}
