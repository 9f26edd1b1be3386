//! The receiver that `outboxd dev` brings along: shows every delivery on the developer's own terminal.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::output;

/// Characters of a payload that are shown.
const SHOWN_CHARS: usize = 2_000;
/// Nobody but outboxd itself posts here, and it has a limit of its own.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A receiver on a free port of this machine.
pub(super) struct Receiver {
    listener: TcpListener,
    address: SocketAddr,
}

impl Receiver {
    pub(super) async fn bind() -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port for the built-in receiver")?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it takes deliveries.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Takes deliveries until `stop` is cancelled.
    pub(super) async fn serve(self, stop: CancellationToken) -> std::io::Result<()> {
        let router = Router::new().route("/", post(show)).layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
        axum::serve(self.listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
    }
}

async fn show(headers: HeaderMap, body: Bytes) -> StatusCode {
    match output::text(&described(&headers, &body)) {
        Ok(()) => StatusCode::OK,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What is shown of one delivery.
fn described(headers: &HeaderMap, body: &[u8]) -> String {
    let header = |name: &str| {
        let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        value.map(|value| harmless(&value))
    };
    let event_type = header("outbox-event-type").unwrap_or_default();
    let subject = header("outbox-subject").map_or_else(String::new, |subject| format!("  subject {subject}"));
    let attempt = header("outbox-attempt").unwrap_or_default();
    let id = header("webhook-id").unwrap_or_default();
    let text = String::from_utf8_lossy(body);
    let more = if text.chars().count() > SHOWN_CHARS { " …" } else { "" };
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    format!("-> {event_type}{subject}  attempt {attempt}  id {id}\n   {}{more}", harmless(&shown))
}

/// Without characters that could steer a terminal.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{FFFD}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_shown_without_characters_that_steer_a_terminal() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("outbox-event-type", "a.b"), ("outbox-attempt", "2"), ("webhook-id", "7")] {
            headers.insert(name, value.parse().unwrap());
        }
        let shown = described(&headers, "{\"a\":\"\u{1b}[2J\u{9b}x\"}".as_bytes());
        assert_eq!(shown, "-> a.b  attempt 2  id 7\n   {\"a\":\"\u{FFFD}[2J\u{FFFD}x\"}");
    }

    #[test]
    fn a_long_payload_is_shown_in_part() {
        let shown = described(&HeaderMap::new(), "é".repeat(5_000).as_bytes());
        assert!(shown.ends_with(" …") && shown.chars().count() < 2_100);
    }
}
