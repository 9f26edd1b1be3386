//! Who may call the API: the configured tokens with their secrets read from where they lie, and `CRON_SECRET`.

use super::environment::{Environment, secret_in_file, usable};
use super::problem::{ConfigError, Problems};
use super::secret::Secret;
use super::settings::Token;

/// The name of the token that `CRON_SECRET` makes.
const CRON_SECRET_NAME: &str = "cron-secret";
/// Tokens with fewer characters are warned of.
pub(super) const SHORT_TOKEN: usize = 16;

/// A token whose secret is known.
#[derive(Debug)]
pub(super) struct KnownToken {
    pub(super) name: String,
    pub(super) scopes: Vec<String>,
    pub(super) secret: Secret,
}

/// Finds the secret of every token.
pub(super) fn known_tokens(tokens: &[Token], environment: &Environment) -> Result<Vec<KnownToken>, ConfigError> {
    let mut problems = Problems::default();
    let mut known: Vec<KnownToken> = Vec::with_capacity(tokens.len() + 1);
    for (index, token) in tokens.iter().enumerate() {
        let key = format!("token.{index} ({:?})", token.name);
        if token.name.trim().is_empty() {
            problems.add(&key, "the name is empty: tokens are told apart in the log by their names");
        }
        if token.scopes.is_empty() {
            problems.add(&key, "scopes is empty: a token without a scope may do nothing");
        }
        if let Some(secret) = problems.keep(secret_of(&key, token, environment)) {
            let (name, scopes) = (token.name.clone(), token.scopes.clone());
            known.push(KnownToken { name, scopes, secret: Secret::from(secret) });
        }
    }
    if let Some(secret) = problems.keep(cron_secret(environment)).flatten() {
        let (name, scopes) = (CRON_SECRET_NAME.to_owned(), vec!["process".to_owned()]);
        known.push(KnownToken { name, scopes, secret: Secret::from(secret) });
    }
    check_distinct(&known, &mut problems);
    problems.finish()?;
    Ok(known)
}

fn secret_of(key: &str, token: &Token, environment: &Environment) -> Result<String, ConfigError> {
    let secret = match (&token.value, &token.value_env, &token.value_file) {
        (Some(value), None, None) => usable(value.reveal())
            .ok_or_else(|| ConfigError::one(format!("{key}: value is empty: a secret must not be")))?,
        (None, Some(name), None) => environment.secret(key, name)?,
        (None, None, Some(path)) => secret_in_file(key, path)?,
        (None, None, None) => {
            return Err(ConfigError::one(format!(
                "{key}: has no secret: valid is one of value, value_env, value_file"
            )));
        }
        _ => {
            let problem = "has two sources for one secret: valid is exactly one of value, value_env, value_file";
            return Err(ConfigError::one(format!("{key}: {problem}")));
        }
    };
    sendable(key, secret)
}

fn cron_secret(environment: &Environment) -> Result<Option<String>, ConfigError> {
    let secret = match (environment.get("CRON_SECRET"), environment.get("CRON_SECRET_FILE")) {
        (None, None) => return Ok(None),
        (Some(_), None) => environment.secret("token", "CRON_SECRET")?,
        (None, Some(path)) => secret_in_file("CRON_SECRET_FILE", path)?,
        (Some(_), Some(_)) => {
            return Err(ConfigError::one("CRON_SECRET: is given by CRON_SECRET_FILE too: keep one of them"));
        }
    };
    sendable("CRON_SECRET", secret).map(Some)
}

/// What cannot stand in an `Authorization` header could never match.
fn sendable(key: &str, secret: String) -> Result<String, ConfigError> {
    if secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(secret)
    } else {
        Err(ConfigError::one(format!("{key}: the secret holds spaces or characters other than visible ASCII")))
    }
}

/// Two tokens of one name could not be told apart in the log, two of one value not at all.
fn check_distinct(known: &[KnownToken], problems: &mut Problems) {
    for (index, token) in known.iter().enumerate() {
        let earlier = &known[..index];
        if earlier.iter().any(|other| other.name == token.name) {
            problems.add("token", format!("two tokens are named {:?}: names must differ", token.name));
        } else if let Some(other) = earlier.iter().find(|other| other.secret == token.secret) {
            problems.add("token", format!("{:?} and {:?} have the same secret", other.name, token.name));
        }
    }
}
