//! Delivery over HTTP: one POST per attempt, the payload byte for byte as its body, the answer read as an outcome.
//!
//! [`request`] writes the headers, [`signature`] signs, [`answer`] turns an answer's head into an [`Outcome`], [`body`]
//! reads a bounded part of the rest and [`failure`] names what went wrong when there was no answer.
//!
//! One deadline, the attempt's, covers name lookup, connecting, TLS, headers and body together. Redirects are never
//! followed and proxies of the environment are never used: an event goes to the URL that the operator wrote, or nowhere.
//! All routes share one [`WebhookClient`] and so its connections.
//!
//! Nothing here retries; that is decided from the outcome. Neither errors nor `Debug` output contain the URL's query,
//! header values or secrets.

mod answer;
mod body;
mod client;
mod failure;
mod request;
mod signature;

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use reqwest::{Method, Request, Url};

pub use client::WebhookClient;
pub use failure::failure_class;
pub use signature::{SecretError, SigningSecret};

use self::answer::{Head, outcome_of};
use self::body::BodyEnd;
use super::{Answer, Delivery, Handler};
use crate::event::HeaderProblem;
use crate::outcome::Outcome;

/// Where a route's events go and what goes with them.
#[derive(Clone)]
pub struct WebhookSettings {
    /// `http` or `https`, without credentials and fragment.
    pub url: String,
    /// Sent with every delivery; the words of outboxd itself cannot be replaced.
    pub headers: BTreeMap<String, String>,
    /// Each of them signs every delivery; without any, deliveries are unsigned.
    pub secrets: Vec<SigningSecret>,
    /// Statuses that make an event a dead letter at once.
    pub dead_letter_on: Vec<u16>,
}

impl fmt::Debug for WebhookSettings {
    /// Leaves out whatever may be a secret: the URL and the values of headers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WebhookSettings")
            .field("headers", &self.headers.keys())
            .field("secrets", &self.secrets)
            .field("dead_letter_on", &self.dead_letter_on)
            .finish_non_exhaustive()
    }
}

/// Why a webhook or its client cannot be made. Texts name the setting and hold no secret.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// No HTTP client, mostly because the system has no CA certificates.
    #[error(
        "no HTTP client: {reason}; https needs the system's CA certificates (package ca-certificates or SSL_CERT_FILE)"
    )]
    Client {
        /// What is missing.
        reason: String,
        /// The client's error.
        #[source]
        source: reqwest::Error,
    },
    /// Not a URL that can be delivered to.
    #[error("url: {problem}; valid is for example https://hooks.example.com/in")]
    Url {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A header that a route may not set.
    #[error("headers: {0}")]
    Header(#[from] HeaderProblem),
    /// Two names that differ only in case.
    #[error("headers: {name:?} is given twice (names are case-insensitive)")]
    HeaderTwice {
        /// The name, in lower case.
        name: String,
    },
    /// A status that says that the event is done, or none that ends an answer.
    #[error("dead_letter_on: {status} cannot mean a failure; valid are 300 to 599")]
    DeadLetterOn {
        /// As it was written.
        status: u16,
    },
}

/// Posts events to one URL.
pub struct Webhook {
    client: WebhookClient,
    url: Url,
    headers: HeaderMap,
    secrets: Vec<SigningSecret>,
    dead_letter_on: Vec<u16>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Webhook")
            .field("host", &self.url.host_str())
            .field("secrets", &self.secrets)
            .field("dead_letter_on", &self.dead_letter_on)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// Checks the settings of a route; nothing is sent.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(client: WebhookClient, settings: WebhookSettings) -> Result<Self, WebhookError> {
        let url = checked_url(&settings.url)?;
        let headers = request::route_headers(&settings.headers)?;
        if let Some(&status) = settings.dead_letter_on.iter().find(|status| !(300..=599).contains(*status)) {
            return Err(WebhookError::DeadLetterOn { status });
        }
        Ok(Self { client, url, headers, secrets: settings.secrets, dead_letter_on: settings.dead_letter_on })
    }

    /// One attempt without a deadline; dropping the future closes its connection.
    async fn attempt(&self, delivery: &Delivery) -> Outcome {
        let (headers, body) = match request::build(delivery, &self.headers, &self.secrets, wall_clock()) {
            Ok(parts) => parts,
            // The row itself is bad: no later attempt could build another request from it.
            Err(problem) => return Outcome::DeadLetter { error: format!("request: {problem}") },
        };
        let mut request = Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = headers;
        *request.body_mut() = Some(body.into());
        let answer = match self.client.http().execute(request).await {
            Ok(answer) => answer,
            Err(error) => return Outcome::retry(failure::describe(error)),
        };
        let status_code = answer.status().as_u16();
        delivery.note_answer(Answer { status_code, excerpt: String::new() });
        let head = Head { status: answer.status(), headers: answer.headers() };
        let outcome = outcome_of(&head, &self.dead_letter_on, wall_clock());
        let end = body::read(answer, |excerpt| delivery.note_answer(Answer { status_code, excerpt })).await;
        match (end, &outcome) {
            (BodyEnd::Broken(error), Outcome::Complete | Outcome::Accepted) => {
                Outcome::retry(failure::describe_body(error))
            }
            // Whoever refuses has been understood by the head alone.
            (BodyEnd::Broken(_) | BodyEnd::Complete | BodyEnd::LimitReached, _) => outcome,
        }
    }
}

#[async_trait]
impl Handler for Webhook {
    async fn handle(&self, delivery: &Delivery) -> Outcome {
        match tokio::time::timeout(delivery.remaining(), self.attempt(delivery)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                Outcome::TimedOut { error: format!("no complete answer within {} ms", delivery.timeout().as_millis()) }
            }
        }
    }
}

fn checked_url(text: &str) -> Result<Url, WebhookError> {
    let refuse = |problem| Err(WebhookError::Url { problem });
    let Ok(url) = Url::parse(text) else {
        return refuse("is no absolute URL");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return refuse("must begin with http:// or https://");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return refuse("has no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("holds credentials, which belong into `headers` (authorization)");
    }
    if url.fragment().is_some() {
        return refuse("has a fragment (#…), which is never sent");
    }
    Ok(url)
}

/// The door to the process's own clock: it stamps signatures and reads dates of receivers, and decides nothing else.
#[allow(clippy::disallowed_methods, reason = "stamps are for the receiver's clock, not for the database's")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> WebhookSettings {
        WebhookSettings { url: url.to_owned(), headers: BTreeMap::new(), secrets: vec![], dead_letter_on: vec![] }
    }

    fn made(settings: WebhookSettings) -> Result<Webhook, WebhookError> {
        Webhook::new(WebhookClient::new().unwrap(), settings)
    }

    #[test]
    fn only_plain_http_urls_are_taken() {
        assert!(made(settings("http://127.0.0.1:8080/in?tenant=1")).is_ok());
        for url in ["", "/in", "ftp://h/", "http://", "https://user:hunter2@h/", "http://user@h/", "http://h/#a"] {
            let error = made(settings(url)).unwrap_err().to_string();
            assert!(error.starts_with("url: ") && !error.contains("hunter2"), "{url}: {error}");
        }
    }

    #[test]
    fn a_bad_setting_is_named() {
        let bad = WebhookSettings { dead_letter_on: vec![422, 200], ..settings("http://h/") };
        let error = made(bad).unwrap_err().to_string();
        assert_eq!(error, "dead_letter_on: 200 cannot mean a failure; valid are 300 to 599");
        let headers = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "s3cret".to_owned())).collect();
        let reserved = WebhookSettings { headers: headers(&["webhook-id"]), ..settings("http://h/") };
        let twice = WebhookSettings { headers: headers(&["X-A", "x-a"]), ..settings("http://h/") };
        for bad in [reserved, twice] {
            let error = made(bad).unwrap_err().to_string();
            assert!(error.starts_with("headers: ") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn debug_output_holds_no_secret() {
        let mut secret = settings("http://h/in?key=s3cret");
        secret.headers.insert("authorization".to_owned(), "Bearer s3cret".to_owned());
        secret.secrets.push("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".parse().unwrap());
        let text = format!("{secret:?} {:?}", made(secret.clone()).unwrap());
        assert!(!text.contains("s3cret") && !text.contains("C2FV"), "{text}");
    }
}
