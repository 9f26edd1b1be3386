//! From a route's settings to the handler that delivers over HTTP: the one place here that knows the webhook module.

use std::sync::Arc;

use super::problem::ConfigError;
use super::settings::Route;
use crate::handler::Handler;
use crate::handler::webhook::{SigningSecret, Webhook, WebhookClient, WebhookSettings};

/// Makes receivers that share one HTTP client.
pub(super) struct Receivers {
    client: WebhookClient,
}

impl Receivers {
    pub(super) fn new() -> Result<Self, ConfigError> {
        let client = WebhookClient::new()
            .map_err(|error| ConfigError::one(format!("route: the HTTP client cannot be made: {error}")))?;
        Ok(Self { client })
    }

    /// The handler of one route.
    pub(super) fn receiver(
        &self,
        key: &str,
        url: &str,
        written: &Route,
        secrets: &[String],
    ) -> Result<Arc<dyn Handler>, ConfigError> {
        let secrets: Result<Vec<SigningSecret>, _> = secrets.iter().map(|secret| secret.parse()).collect();
        let secrets =
            secrets.map_err(|error| ConfigError::one(format!("{key}: a signing secret is not valid: {error}")))?;
        let settings = WebhookSettings {
            url: url.to_owned(),
            headers: written.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect(),
            secrets,
            dead_letter_on: written.dead_letter_on.clone(),
        };
        match Webhook::new(self.client.clone(), settings) {
            Ok(webhook) => Ok(Arc::new(webhook)),
            Err(error) => Err(ConfigError::one(format!("{key}: {error}"))),
        }
    }
}
