//! The one HTTP client that all webhook routes share, and with it their connections.

use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;

use super::WebhookError;

/// Receivers commonly close a connection that was idle for 60 s; being earlier avoids posting into a closing one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Idle connections per receiver: as many as an instance commonly uses at once.
const IDLE_PER_HOST: usize = 128;
/// How soon a receiver that vanished without a word is noticed on a kept connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Cheap to clone; all clones share their connections.
///
/// It follows no redirects, uses no proxies of the environment and has no time-out of its own: the deadline of each
/// attempt covers everything. HTTP/2 is used where TLS negotiates it.
#[derive(Debug, Clone)]
pub struct WebhookClient(Client);

impl WebhookClient {
    /// Makes the client. Chooses ring for the process's TLS unless the process has already chosen.
    ///
    /// # Errors
    /// The system has no CA certificates to judge receivers by.
    pub fn new() -> Result<Self, WebhookError> {
        // An error means that a provider is installed, which is all that is needed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder()
            .user_agent(concat!("outboxd/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .tcp_nodelay(true)
            .tcp_keepalive(KEEP_ALIVE)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE)
            .build()
            .map(Self)
            .map_err(|source| WebhookError::Client { reason: super::failure::deepest_text(&source), source })
    }

    pub(super) fn http(&self) -> &Client {
        &self.0
    }
}
