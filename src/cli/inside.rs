//! The HTTP interface over the database itself, within this process: a command without a server asks the same questions and gets
//! the same answers, without a socket or a token.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use reqwest::{Method, StatusCode, Url};
use tower::ServiceExt as _;

use super::outboxes::Chosen;
use crate::api::{ApiSettings, router};
use crate::config::{Config, Environment};
use crate::handler::Registry;
use crate::processor::{OutboxParts, Outboxes};

/// Bytes of a request's body: nobody but this program writes it.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// The interface over one outbox.
pub(super) struct Inside {
    router: Router,
    outbox: Chosen,
}

impl Inside {
    /// The interface over this outbox. What is changed through it is noted as done by `cli`.
    pub(super) fn new(config: &Config, outbox: Chosen) -> anyhow::Result<Self> {
        let settings = ApiSettings {
            nobody: actor(&Environment::of_process()),
            max_body_bytes: MAX_BODY_BYTES,
            max_payload_bytes: config.store().max_payload_bytes,
            ..ApiSettings::default()
        };
        let parts = OutboxParts {
            name: outbox.name.clone(),
            store: outbox.store.clone(),
            // Nothing is delivered from here.
            registry: Registry::new(Vec::new())?,
            settings: config.processor(),
        };
        Ok(Self { router: router(settings, Outboxes::new(vec![parts])?), outbox })
    }

    /// One request: the status and the answer's text.
    pub(super) async fn ask(
        &self,
        method: Method,
        url: &Url,
        body: Option<String>,
    ) -> anyhow::Result<(StatusCode, String)> {
        let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let request = Request::builder().method(method).uri(target).body(Body::from(body.unwrap_or_default()))?;
        let answer = self.router.clone().oneshot(request).await?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8(bytes.to_vec())?))
    }

    /// Closes the connections to the database.
    pub(super) async fn close(&self) {
        self.outbox.close().await;
    }
}

/// Who works on the database by a command.
fn actor(environment: &Environment) -> String {
    environment.user_name().map_or_else(|| "cli".to_owned(), |user| format!("cli ({user})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_name_stands_beside_the_word_where_it_is_known() {
        let of = |pairs: &[(&str, &str)]| actor(&pairs.iter().copied().collect());
        assert_eq!(of(&[("USER", "alice"), ("LOGNAME", "bob")]), "cli (alice)");
        assert_eq!(of(&[("USER", ""), ("LOGNAME", "bob")]), "cli (bob)");
        assert_eq!(of(&[("USER", "a\nb")]), "cli");
    }
}
