//! The listening side: connections with limits, and an orderly end.
//!
//! hyper is driven directly because every connection needs a deadline for its request head, which a client could
//! otherwise send a byte a minute. A listener that runs out of file descriptors waits and goes on. The loop ends when it
//! is told to and not before: while the processor winds down, callers still get their answers (503, or their run's
//! report).

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long a request's head may take to arrive, the wait between two requests of a connection included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long connections may take to finish once the listener has stopped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait before accepting again after the system has refused to.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is cancelled, then lets open requests finish for at most a second.
///
/// To shut down without turning callers away: `begin_shutdown`, await `shut_down` of the processor, then cancel `stop`.
/// Dropping the future closes every connection at once.
///
/// # Errors
/// None at present; the listener's own failures are waited out.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(answer(stream, router.clone(), stop.clone()));
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections for the moment");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        connections.abort_all();
    }
    Ok(())
}

/// Answers the requests of one connection.
async fn answer(stream: TcpStream, router: Router, stop: CancellationToken) {
    // Answers are small and whole; waiting to fill a segment would only delay them.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
