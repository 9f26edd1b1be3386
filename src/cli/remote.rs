//! A server as a command's other end: requests with the operator's token, problems as errors.
//!
//! Where no server is named, the same requests go to the same interface within this process, over the database itself. Answers
//! are handed on as the text that came, so that payloads stay what they are. No redirect is followed and no proxy of the
//! environment is asked, for the token must reach nobody but the server that was named.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::global::Global;
use super::inside::Inside;
use super::output::NotUnderstood;
use super::shown::plain;
use crate::config::{Environment, Secret, ServerAddress};

/// How long one request may take: one that changes 10,000 events is not done at once.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a server may take to accept a connection.
const DIAL: Duration = Duration::from_secs(10);
/// Bytes of an answer; the largest page of events is far smaller.
const MOST_ANSWERED: usize = 256 << 20;

/// Whom a command asks: a server, or else the database itself.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ServerArguments {
    /// Ask this server instead of the database [env: OUTBOXD_URL]
    #[arg(long, value_name = "URL", display_order = 800)]
    server: Option<String>,
    /// File with the server's token; without it the token is taken from OUTBOXD_API_TOKEN
    #[arg(long, value_name = "FILE", display_order = 801)]
    token_file: Option<PathBuf>,
}

impl ServerArguments {
    /// The server that is to be asked; `None` when the database is. A database named by flag comes before a server
    /// named in the environment.
    ///
    /// # Errors
    /// Both are named by flags, the URL is none, or the token cannot be read.
    pub(super) fn open(&self, global: &Global) -> anyhow::Result<Option<Server>> {
        if global.database_url.is_some() {
            if self.server.is_some() {
                return Err(NotUnderstood("--server and --database-url: keep one of them".to_owned()).into());
            }
            return Ok(None);
        }
        let address = Environment::of_process().server(self.server.as_deref(), self.token_file.as_deref())?;
        match address {
            Some(address) => Server::new(address).map(Some),
            None if self.token_file.is_some() => {
                Err(NotUnderstood("--token-file: is of use only with --server".to_owned()).into())
            }
            None => Ok(None),
        }
    }
}

/// A server, and what it is shown; or the interface over the database.
pub(super) struct Server {
    way: Way,
    base: Url,
    has_token: bool,
}

/// How requests reach it.
enum Way {
    Over { http: Client, token: Option<Secret> },
    Within(Inside),
}

/// A problem as the server writes it, as far as it is repeated.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ProblemText {
    detail: Option<String>,
    code: Option<String>,
    event_status: Option<String>,
    errors: Vec<FieldText>,
}

#[derive(Deserialize)]
struct FieldText {
    pointer: String,
    detail: String,
}

impl Server {
    fn new(address: ServerAddress) -> anyhow::Result<Self> {
        let ServerAddress { url, given_by, token } = address;
        let base = base_url(&url).map_err(|problem| NotUnderstood(format!("{given_by}: {problem}")))?;
        // An error means that a provider is installed, which is all that is needed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .user_agent(concat!("outboxd/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(DIAL)
            .timeout(PATIENCE)
            .build()
            .context("requests cannot be made from this machine")?;
        Ok(Self { has_token: token.is_some(), way: Way::Over { http, token }, base })
    }

    /// The same interface within this process.
    pub(super) fn within(inside: Inside) -> anyhow::Result<Self> {
        Ok(Self { way: Way::Within(inside), base: Url::parse("http://database")?, has_token: false })
    }

    /// Closes connections to the database, if there are any.
    pub(super) async fn close(&self) {
        if let Way::Within(inside) = &self.way {
            inside.close().await;
        }
    }

    /// GET. `path` is the resource's segments, `["v1", "events", id]`; both they and `query` are encoded here.
    ///
    /// # Errors
    /// The server cannot be reached, or has answered with a problem.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, String)]) -> anyhow::Result<String> {
        self.send(Method::GET, path, query, None).await
    }

    /// As [`Server::get`], read from its JSON.
    ///
    /// # Errors
    /// As [`Server::get`], or the answer has another form.
    pub(super) async fn get_as<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> anyhow::Result<T> {
        self.read_as(&self.get(path, query).await?)
    }

    /// POST with a JSON body.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub(super) async fn post(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &(impl Serialize + Sync),
    ) -> anyhow::Result<String> {
        self.send(Method::POST, path, query, Some(serde_json::to_string(body)?)).await
    }

    /// As [`Server::post`], read from its JSON.
    ///
    /// # Errors
    /// As [`Server::post`], or the answer has another form.
    pub(super) async fn post_as<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &(impl Serialize + Sync),
    ) -> anyhow::Result<T> {
        self.read_as(&self.post(path, query, body).await?)
    }

    fn read_as<T: DeserializeOwned>(&self, text: &str) -> anyhow::Result<T> {
        serde_json::from_str(text).map_err(|error| {
            anyhow!(
                "{} answered in a form that this program does not know ({error}): are both of one version?",
                self.base
            )
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<String>,
    ) -> anyhow::Result<String> {
        let url = self.url(path, query)?;
        let (status, text) = match &self.way {
            Way::Over { http, token } => self.ask(http, token.as_ref(), method, url, body).await?,
            Way::Within(inside) => inside.ask(method, &url, body).await?,
        };
        if status.is_success() { Ok(text) } else { Err(self.refusal(status, &text)) }
    }

    async fn ask(
        &self,
        http: &Client,
        token: Option<&Secret>,
        method: Method,
        url: Url,
        body: Option<String>,
    ) -> anyhow::Result<(StatusCode, String)> {
        let mut request = http.request(method, url);
        if let Some(token) = token {
            request = request.bearer_auth(token.reveal());
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let unreachable = |error: reqwest::Error| {
            let error = error.without_url();
            anyhow!("{} cannot be asked: {}", self.base, innermost(&error))
        };
        let mut answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + part.len() > MOST_ANSWERED {
                bail!("{} answers with more than {MOST_ANSWERED} bytes: is this an outboxd server?", self.base);
            }
            body.extend_from_slice(&part);
        }
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    fn url(&self, path: &[&str], query: &[(&str, String)]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(path);
            }
            Err(()) => bail!("{} can have no path", self.base),
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// A problem in the server's own words, and what to do about a token.
    fn refusal(&self, status: StatusCode, text: &str) -> anyhow::Error {
        let problem = serde_json::from_str::<ProblemText>(text).unwrap_or_default();
        let (Some(detail), Some(code)) = (problem.detail, problem.code) else {
            return anyhow!("{} answered {status} without saying why: is this an outboxd server?", self.base);
        };
        let advice = match status {
            StatusCode::UNAUTHORIZED if !self.has_token => "; set OUTBOXD_API_TOKEN or give --token-file",
            StatusCode::UNAUTHORIZED => "; check OUTBOXD_API_TOKEN or --token-file",
            _ => "",
        };
        let state = problem.event_status.map_or_else(String::new, |status| format!("; it is {}", plain(&status)));
        let mut lines = String::new();
        // A single field already stands in the sentence.
        if problem.errors.len() > 1 {
            for FieldText { pointer, detail } in &problem.errors {
                let _ = write!(lines, "\n  {}: {}", plain(pointer), plain(detail));
            }
        }
        anyhow!("{}{state}{advice} ({}){lines}", plain(&detail), plain(&code))
    }
}

/// The URL below which the interface lies.
fn base_url(text: &str) -> Result<Url, String> {
    let valid = "valid is a URL such as https://outbox.example.com";
    let url = Url::parse(text).map_err(|error| format!("{error}: {valid}"))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(format!("begins neither with http:// nor with https://: {valid}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a login: give a token by OUTBOXD_API_TOKEN or --token-file instead".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("has something behind its path: {valid}"));
    }
    Ok(url)
}

/// The innermost cause, which knows neither URL nor headers.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> anyhow::Result<Server> {
        Server::new(ServerAddress { url: url.to_owned(), given_by: "--server", token: None })
    }

    #[test]
    fn a_url_is_put_together_below_the_servers_own_path_and_encoded() {
        for (base, expected) in [
            ("http://a:8080", "http://a:8080/v1/events/a%2Fb%20c?outbox=x%26y"),
            ("https://a/outbox/", "https://a/outbox/v1/events/a%2Fb%20c?outbox=x%26y"),
        ] {
            let url = server(base).unwrap().url(&["v1", "events", "a/b c"], &[("outbox", "x&y".to_owned())]).unwrap();
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn what_is_no_servers_url_is_refused_and_a_password_is_not_repeated() {
        for url in ["a:8080", "ftp://a", "/v1", "http://", "http://u:s3cret@a", "http://a?x=1"] {
            let problem = server(url).err().unwrap();
            assert!(problem.is::<NotUnderstood>(), "{url}");
            assert!(problem.to_string().starts_with("--server: ") && !problem.to_string().contains("s3cret"), "{url}");
        }
    }

    #[test]
    fn a_problem_is_told_in_the_servers_words() {
        let server = server("http://a").unwrap();
        let body = r#"{"detail":"no bearer token was sent","code":"unauthorized"}"#;
        let told = server.refusal(StatusCode::UNAUTHORIZED, body).to_string();
        assert_eq!(told, "no bearer token was sent; set OUTBOXD_API_TOKEN or give --token-file (unauthorized)");
        let told = server.refusal(StatusCode::BAD_GATEWAY, "<html>").to_string();
        assert!(told.contains("502") && told.contains("outboxd server"), "{told}");
    }
}
