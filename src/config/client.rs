//! Where a command that asks a running server finds it: flags before the environment, the token never as an argument.
//!
//! `OUTBOXD_URL` and `OUTBOXD_API_TOKEN` belong to the client; no setting has these names. (`OUTBOXD_TOKEN` is a setting: the
//! tokens that a service knows.)

use std::path::Path;

use super::environment::{Environment, secret_in_file, usable};
use super::problem::ConfigError;
use super::secret::Secret;

/// What stands behind `OUTBOXD_` in the client's variables.
pub(super) const CLIENT_VARIABLES: [&str; 2] = ["URL", "API_TOKEN"];

const URL: &str = "OUTBOXD_URL";
const TOKEN: &str = "OUTBOXD_API_TOKEN";

/// A server and what it is shown.
#[derive(Debug, Clone)]
pub struct ServerAddress {
    /// Its URL as it was given.
    pub url: String,
    /// Where the URL was given: a flag or a variable.
    pub given_by: &'static str,
    /// The bearer token, if there is one.
    pub token: Option<Secret>,
}

impl Environment {
    /// The server that `--server` or `OUTBOXD_URL` names, with the token of `--token-file` or `OUTBOXD_API_TOKEN`; `None`
    /// when none is named.
    ///
    /// # Errors
    /// An empty URL or token, and a file that cannot be read.
    pub fn server(&self, flag: Option<&str>, token_file: Option<&Path>) -> Result<Option<ServerAddress>, ConfigError> {
        let named = flag.map(|url| ("--server", url)).or_else(|| self.get(URL).map(|url| (URL, url)));
        let Some((given_by, url)) = named else { return Ok(None) };
        if url.trim().is_empty() {
            return Err(ConfigError::one(format!(
                "{given_by}: is empty: valid is a URL such as http://127.0.0.1:8080"
            )));
        }
        let token = match token_file {
            Some(path) => Some(secret_in_file("--token-file", &path.to_string_lossy())?),
            None => self.get(TOKEN).map(token).transpose()?,
        };
        Ok(Some(ServerAddress { url: url.trim().to_owned(), given_by, token: token.map(Secret::from) }))
    }
}

impl Environment {
    /// The operating system's name of who runs this program, where it is simply known.
    #[must_use]
    pub fn user_name(&self) -> Option<&str> {
        let is_plain = |name: &&str| !name.is_empty() && name.len() <= 64 && !name.chars().any(char::is_control);
        ["USER", "LOGNAME"].into_iter().filter_map(|variable| self.get(variable)).find(is_plain)
    }
}

fn token(text: &str) -> Result<String, ConfigError> {
    usable(text).ok_or_else(|| ConfigError::one(format!("{TOKEN}: is empty: give it a token, or unset it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().copied().collect()
    }

    #[test]
    fn the_flag_comes_before_the_environment_and_without_either_there_is_no_server() {
        let given = environment(&[(URL, "http://a"), (TOKEN, "s3cret\n")]);
        let found = given.server(Some("http://b"), None).unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.given_by), ("http://b", "--server"));
        assert_eq!(found.token.as_ref().map(Secret::reveal), Some("s3cret"));
        assert!(!format!("{found:?}").contains("s3cret"));
        assert_eq!(given.server(None, None).unwrap().unwrap().given_by, URL);
        assert!(environment(&[(TOKEN, "x")]).server(None, None).unwrap().is_none());
    }

    #[test]
    fn what_is_empty_or_cannot_be_read_is_refused_by_its_name() {
        let refusal = |pairs: &[(&str, &str)], file: Option<&str>| {
            environment(pairs).server(None, file.map(Path::new)).unwrap_err().to_string()
        };
        assert!(refusal(&[(URL, " ")], None).contains(URL));
        assert!(refusal(&[(URL, "http://a"), (TOKEN, "")], None).contains(TOKEN));
        assert!(refusal(&[(URL, "http://a")], Some("/nowhere/at/all")).contains("--token-file"));
    }
}
