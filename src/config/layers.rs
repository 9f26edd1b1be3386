//! Where settings come from: defaults ← file ← environment ← flags, each layer over the ones before it.
//!
//! A list (`token`, `outbox`, `route`) is replaced as a whole, never mixed. Every value remembers its layer, so that an error can
//! say which file or variable to change.

use std::fs;
use std::path::{Path, PathBuf};

use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::client::CLIENT_VARIABLES;
use super::environment::{Environment, secret_in_file, usable};
use super::keys::{KEYS, variable};
use super::problem::{ConfigError, Problems, nearest};
use super::settings::Settings;

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "outboxd.toml";

/// Where the settings of one process come from.
#[derive(Clone, Default)]
pub struct Sources {
    /// `--config`: must exist. Without it `outboxd.toml` in the working folder is read if it is there.
    pub file: Option<PathBuf>,
    /// Where `outboxd.toml` is looked for.
    pub working_folder: PathBuf,
    /// The environment.
    pub environment: Environment,
    /// `--database-url`
    pub database_url: Option<String>,
    /// `--listen`
    pub listen: Option<String>,
}

impl Sources {
    /// Reads the layers and lays them over one another.
    pub(super) fn settings(&self) -> Result<Settings, ConfigError> {
        let mut figment = Figment::new();
        if let Some(file) = self.file_layer()? {
            figment = figment.merge(file);
        }
        for layer in self.environment_layers()? {
            figment = figment.merge(layer);
        }
        for layer in self.flag_layers() {
            figment = figment.merge(layer);
        }
        Ok(figment.extract()?)
    }

    /// Whether anything says which database to use.
    pub(super) fn names_a_database(&self) -> bool {
        let in_file = || self.file_layer().ok().flatten().is_some_and(|layer| layer.dict.contains_key("database_url"));
        self.database_url.is_some() || self.environment_database_url().is_ok_and(|found| found.is_some()) || in_file()
    }

    fn file_layer(&self) -> Result<Option<Layer>, ConfigError> {
        let default = self.working_folder.join(DEFAULT_FILE);
        let path = match &self.file {
            Some(path) => path,
            None if default.is_file() => &default,
            None => return Ok(None),
        };
        let text = fs::read_to_string(path)
            .map_err(|error| ConfigError::one(format!("--config: {} cannot be read: {error}", path.display())))?;
        let dict =
            Toml::from_str::<Dict>(&text).map_err(|error| not_toml(path, &text, error.message(), error.span()))?;
        Ok(Some(Layer { name: format!("in {}", path.display()), dict }))
    }

    fn environment_layers(&self) -> Result<Vec<Layer>, ConfigError> {
        let mut problems = Problems::default();
        let mut layers = Vec::new();
        for (name, rest, text) in self.environment.with_prefix("OUTBOXD_") {
            let key = rest.to_lowercase().replace("__", ".");
            match KEYS.iter().find(|(known, _)| *known == key) {
                // These may come by several variables and are judged together below.
                Some(("database_url", _)) => {}
                Some((known, kind)) => layers.push(Layer::one(format!("in {name}"), known, kind.value(text))),
                None if key == "database_url_file" || CLIENT_VARIABLES.contains(&rest) || is_service_link(rest) => {}
                None => problems.add(name, unknown_variable(name)),
            }
        }
        if self.database_url.is_none()
            && let Some((name, url)) = problems.keep(self.environment_database_url()).flatten()
        {
            layers.push(Layer::one(format!("in {name}"), "database_url", Value::from(url)));
        }
        problems.finish()?;
        Ok(layers)
    }

    /// The database's URL from the environment and the variable that gave it.
    fn environment_database_url(&self) -> Result<Option<(&'static str, String)>, ConfigError> {
        const VARIABLES: [&str; 4] =
            ["OUTBOXD_DATABASE_URL", "OUTBOXD_DATABASE_URL_FILE", "DATABASE_URL", "DATABASE_URL_FILE"];
        let mut set = VARIABLES.into_iter().filter_map(|name| Some((name, self.environment.get(name)?)));
        let Some((name, text)) = set.next() else { return Ok(None) };
        if let Some((other, _)) = set.next() {
            return Err(ConfigError::one(format!(
                "database_url: is given by both {name} and {other}: keep one of them"
            )));
        }
        let url = if name.ends_with("_FILE") {
            secret_in_file("database_url", text)?
        } else {
            usable(text).ok_or_else(|| {
                ConfigError::one(format!(
                    "database_url: {name} is empty: give it a value, such as postgres://…, or unset it"
                ))
            })?
        };
        Ok(Some((name, url)))
    }

    fn flag_layers(&self) -> impl Iterator<Item = Layer> {
        let flags =
            [("--database-url", "database_url", &self.database_url), ("--listen", "server.listen", &self.listen)];
        flags.into_iter().filter_map(|(flag, key, value)| {
            value.as_ref().map(|value| Layer::one(format!("in {flag}"), key, Value::from(value.as_str())))
        })
    }
}

/// One layer: some settings and the name of the place that they come from.
struct Layer {
    name: String,
    dict: Dict,
}

impl Layer {
    fn one(name: String, key: &str, value: Value) -> Self {
        Self { name, dict: figment::util::nest(key, value).into_dict().unwrap_or_default() }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> figment::error::Result<Map<Profile, Dict>> {
        Ok(Map::from([(Profile::Default, self.dict.clone())]))
    }
}

/// A syntax error by its place. The line itself is not repeated, for it may hold a secret.
fn not_toml(path: &Path, text: &str, message: &str, span: Option<std::ops::Range<usize>>) -> ConfigError {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = message.trim().replace('\n', ", ");
    ConfigError::one(format!("{} is not valid TOML at line {line}, column {column}: {message}", path.display()))
}

fn unknown_variable(name: &str) -> String {
    let variables: Vec<String> = KEYS.iter().map(|(key, _)| variable(key)).collect();
    let names: Vec<&str> = variables.iter().map(String::as_str).collect();
    let near = nearest(name, &names).map_or_else(String::new, |near| format!("did you mean {near}? "));
    format!("no setting has this environment variable: {near}Valid are {}", names.join(", "))
}

/// Kubernetes gives each pod variables about the services around it; those of a service named `outboxd`, or
/// `outboxd-…`, look like settings and are none.
fn is_service_link(rest: &str) -> bool {
    let rest = format!("_{rest}");
    let is_port = |part: &str| {
        let mut parts = part.split('_');
        parts.next().is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            && parts.next().is_some_and(|protocol| ["TCP", "UDP", "SCTP"].contains(&protocol))
    };
    rest.ends_with("_PORT")
        || rest.ends_with("_SERVICE_HOST")
        || rest.contains("_SERVICE_PORT_")
        || rest.match_indices("_PORT_").any(|(at, marker)| is_port(&rest[at + marker.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_kubernetes_services_are_no_settings() {
        for rest in [
            "SERVICE_HOST",
            "SERVICE_PORT",
            "SERVICE_PORT_HTTP",
            "PORT",
            "PORT_8080_TCP",
            "PORT_8080_TCP_ADDR",
            "DASHBOARD_SERVICE_HOST",
            "DASHBOARD_PORT_80_TCP_PROTO",
        ] {
            assert!(is_service_link(rest), "{rest}");
        }
        for rest in ["SERVER__LISTEN", "SERVER__PORTS", "PORT_NAME", "HOST"] {
            assert!(!is_service_link(rest), "{rest}");
        }
    }
}
