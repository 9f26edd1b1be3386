//! Deliveries over TLS: to a receiver that the system trusts, and to one that nobody vouches for.

use std::process::Command;
use std::sync::Arc;

use outboxd::outcome::Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::webhook::{LONG, attempt, error_of};

/// Tells the second process of a test where to deliver to.
const CHILD_URL: &str = "OUTBOXD_TEST_TLS_URL";

/// A receiver with a certificate of its own making; it takes one connection and tells what it heard there.
struct TlsReceiver {
    url: String,
    certificate_pem: String,
    heard: JoinHandle<String>,
}

async fn receiver() -> TlsReceiver {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/in", listener.local_addr().unwrap().port());
    let heard = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        // The handshake may seem complete to this side even when it is refused; what counts is what follows.
        if let Ok(mut stream) = acceptor.accept(stream).await {
            while !heard.ends_with(b"}") && stream.read_buf(&mut heard).await.is_ok_and(|bytes| bytes > 0) {}
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
        String::from_utf8(heard).unwrap()
    });
    TlsReceiver { url, certificate_pem: made.cert.pem(), heard }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_vouches_for_gets_no_event() {
    let receiver = receiver().await;
    let error = error_of(attempt(&receiver.url, LONG).await.0);
    assert!(error.starts_with("tls: invalid peer certificate"), "{error}");
    assert_eq!(receiver.heard.await.unwrap(), "");
}

/// Runs in two processes, because the system's trusted certificates are named by the environment: the first is the
/// receiver, the second delivers.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_the_system_trusts_gets_the_event() {
    if let Ok(url) = std::env::var(CHILD_URL) {
        assert_eq!(attempt(&url, LONG).await.0, Outcome::Complete);
        return;
    }
    let receiver = receiver().await;
    let directory = tempfile::tempdir().unwrap();
    let trusted = directory.path().join("trusted.pem");
    std::fs::write(&trusted, &receiver.certificate_pem).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "webhook_tls::a_certificate_that_the_system_trusts_gets_the_event"]);
    child.env("SSL_CERT_FILE", &trusted).env_remove("SSL_CERT_DIR").env(CHILD_URL, &receiver.url);

    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();

    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    let heard = receiver.heard.await.unwrap();
    assert!(heard.starts_with("POST /in HTTP/1.1\r\n"), "{heard}");
}
