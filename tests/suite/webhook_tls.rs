//! What delivery says of a receiver whose certificate nobody vouches for.

use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::webhook::{LONG, attempt, error_of};

fn self_signed() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_vouches_for_gets_no_event() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = self_signed();
    let receiving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        if let Ok(mut stream) = acceptor.accept(stream).await {
            // The handshake may seem complete to this side; what counts is that nothing follows.
            let _ = stream.read_to_end(&mut heard).await;
        }
        heard
    });

    let error = error_of(attempt(&format!("https://localhost:{port}/"), LONG).await.0);

    assert!(error.starts_with("tls: invalid peer certificate"), "{error}");
    assert_eq!(receiving.await.unwrap(), b"");
}
