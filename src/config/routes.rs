//! From a `[[route]]` table to the [`Route`]: patterns, built-in handlers, policies and the receiver's settings.

use std::sync::Arc;
use std::time::Duration;

use super::check::{LONGEST, duration_range};
use super::environment::{Environment, secret_in_file, usable};
use super::problem::{ConfigError, Problems};
use super::ranges::DEAD_LETTER_ON;
use super::receivers::Receivers;
use super::retry;
use super::settings::Route as Written;
use crate::event::check_route_header;
use crate::handler::{Discard, Handler, Log, Pattern, Route};
use crate::outcome::Policy;

const DAY: Duration = Duration::from_hours(24);
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(10);
const MAX_NAME_CHARS: usize = 100;
const MAX_SECRETS: usize = 10;

/// Puts one route together.
pub(super) fn one_route(
    key: &str,
    written: &Written,
    receivers: &Receivers,
    environment: &Environment,
) -> Result<Route, ConfigError> {
    let mut problems = Problems::default();
    check_scalars(key, written, &mut problems);
    let types = patterns(key, &written.types, &mut problems);
    let handler = problems.keep(handler(key, written, receivers, environment));
    let retry = problems.keep(retry::policy(&format!("{key}.retry"), written.retry.as_ref()));
    problems.finish()?;
    let (Some(handler), Some(retry)) = (handler, retry) else {
        return Err(ConfigError::one(format!("{key}: cannot be used")));
    };
    let policy = Policy { retry, max_defer_age: written.max_defer_age };
    Ok(Route { timeout: written.timeout, policy, ..Route::new(written.name.clone(), types, handler) })
}

fn check_scalars(key: &str, written: &Written, problems: &mut Problems) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !(1..=MAX_NAME_CHARS).contains(&written.name.len()) || !written.name.bytes().all(allowed) {
        let valid = format!("valid are 1 to {MAX_NAME_CHARS} characters of A-Z a-z 0-9 . _ -");
        problems.add(&format!("{key}.name"), format!("{:?} is not valid: {valid}", written.name));
    }
    duration_range(problems, &format!("{key}.timeout"), written.timeout, SHORTEST_TIMEOUT, DAY);
    duration_range(problems, &format!("{key}.max_defer_age"), written.max_defer_age, Duration::from_secs(1), LONGEST);
    match written.format.as_str() {
        "payload" => {}
        "cloudevents" | "cloudevents-binary" => {
            problems.add(
                &format!("{key}.format"),
                format!("{:?} is not available yet: valid is \"payload\"", written.format),
            );
        }
        other => problems.add(&format!("{key}.format"), format!("{other:?} is not valid: valid is \"payload\"")),
    }
}

fn patterns(key: &str, types: &[String], problems: &mut Problems) -> Vec<Pattern> {
    let mut patterns = Vec::with_capacity(types.len());
    for text in types {
        match text.parse() {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => problems.add(&format!("{key}.types"), error),
        }
    }
    patterns
}

fn handler(
    key: &str,
    written: &Written,
    receivers: &Receivers,
    environment: &Environment,
) -> Result<Arc<dyn Handler>, ConfigError> {
    match (written.handler.as_deref(), &written.url) {
        (None, Some(url)) => {
            check_receiver_settings(key, written)?;
            receivers.receiver(key, url.reveal(), written, &signing_secrets(key, written, environment)?)
        }
        (Some(name), None) => {
            refuse_receiver_settings(key, written)?;
            built_in(key, name)
        }
        (Some(_), Some(_)) => {
            Err(ConfigError::one(format!("{key}: has both url and handler: valid is exactly one of them")))
        }
        (None, None) => {
            Err(ConfigError::one(format!("{key}: has neither url nor handler: valid is exactly one of them")))
        }
    }
}

fn built_in(key: &str, name: &str) -> Result<Arc<dyn Handler>, ConfigError> {
    match name {
        "log" => Ok(Arc::new(Log)),
        "discard" => Ok(Arc::new(Discard)),
        other => Err(ConfigError::one(format!(
            "{key}.handler: {other:?} is not valid: valid are \"log\" and \"discard\", or a url instead of a handler"
        ))),
    }
}

/// Names every status and header that is not valid; the handler itself would name the first.
fn check_receiver_settings(key: &str, written: &Written) -> Result<(), ConfigError> {
    let mut problems = Problems::default();
    for status in &written.dead_letter_on {
        problems.range(&format!("{key}.dead_letter_on"), status, &DEAD_LETTER_ON);
    }
    for (name, value) in &written.headers {
        if let Err(error) = check_route_header(name, value.reveal()) {
            problems.add(&format!("{key}.headers"), error);
        }
    }
    problems.finish()
}

/// What a built-in handler would silently leave unused.
fn refuse_receiver_settings(key: &str, written: &Written) -> Result<(), ConfigError> {
    let mut problems = Problems::default();
    let given = [
        ("secrets", written.secrets.is_some()),
        ("secret_files", written.secret_files.is_some()),
        ("secrets_env", written.secrets_env.is_some()),
        ("headers", !written.headers.is_empty()),
        ("dead_letter_on", !written.dead_letter_on.is_empty()),
    ];
    for (name, _) in given.into_iter().filter(|(_, given)| *given) {
        problems.add(&format!("{key}.{name}"), "does nothing with a built-in handler: valid only beside a url");
    }
    problems.finish()
}

/// The texts of the route's signing secrets.
fn signing_secrets(key: &str, written: &Written, environment: &Environment) -> Result<Vec<String>, ConfigError> {
    let secrets: Result<Vec<String>, ConfigError> =
        match (&written.secrets, &written.secret_files, &written.secrets_env) {
            (None, None, None) => return Ok(Vec::new()),
            (Some(values), None, None) => values
                .iter()
                .map(|value| {
                    usable(value.reveal()).ok_or_else(|| {
                        ConfigError::one(format!("{key}.secrets: holds an empty secret: a secret must not be"))
                    })
                })
                .collect(),
            (None, Some(paths), None) => {
                paths.iter().map(|path| secret_in_file(&format!("{key}.secret_files"), path)).collect()
            }
            (None, None, Some(names)) => {
                names.iter().map(|name| environment.secret(&format!("{key}.secrets_env"), name)).collect()
            }
            _ => Err(ConfigError::one(format!(
                "{key}: has two sources for its secrets: valid is at most one of secrets, secret_files, secrets_env"
            ))),
        };
    let secrets = secrets?;
    if (1..=MAX_SECRETS).contains(&secrets.len()) {
        return Ok(secrets);
    }
    let problem = format!("has {} signing secrets: valid are 1 to {MAX_SECRETS}, or none of the keys", secrets.len());
    Err(ConfigError::one(format!("{key}: {problem}")))
}
