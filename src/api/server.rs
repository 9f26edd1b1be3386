//! The listening side: connections with limits, and an orderly end.
//!
//! hyper is driven directly because every connection needs a deadline for its request head, which a client could
//! otherwise send a byte a minute, and because a caller whose body is refused unread must still get to see why. There are
//! at most [`MAX_CONNECTIONS`] at once, so that the descriptors that the database and deliveries need stay free; further
//! callers wait in the system's queue. A listener that runs out of descriptors all the same waits and goes on. The loop
//! ends when it is told to and not before: while the processor winds down, callers still get their answers (503, or their
//! run's report).

use std::io;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use futures_util::future::poll_fn;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::write_deadline::WriteDeadline;

/// Connections at once.
const MAX_CONNECTIONS: usize = 1024;
/// How long a request's head may take to arrive, the wait between two requests of a connection included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long a caller may leave an answer untaken.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long, and for how many bytes, a caller may go on sending after the last answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 8 * 1024 * 1024;
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
    serve_at_once(MAX_CONNECTIONS, listener, router, stop).await
}

/// [`serve`] with at most so many connections at once.
async fn serve_at_once(limit: usize, listener: TcpListener, router: Router, stop: CancellationToken) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < limit => match accepted {
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
    let service = service_fn(move |request: Request<Incoming>| Box::pin(router.clone().oneshot(request)));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(WriteDeadline::new(stream, WRITE_TIMEOUT)), service);
    let ended = tokio::select! {
        ended = poll_fn(|context| connection.poll_without_shutdown(context)) => ended,
        () = stop.cancelled() => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|context| connection.poll_without_shutdown(context)).await
        }
    };
    let stream = connection.into_parts().io.into_inner().into_inner();
    match ended {
        Err(error) if error.is_timeout() => tracing::debug!(%error, "connection ended early"),
        Err(error) => {
            tracing::debug!(%error, "connection ended early");
            linger(stream).await;
        }
        Ok(()) => linger(stream).await,
    }
}

/// Ends a connection from this side and reads on for a moment. Were it closed while its caller is still sending, the
/// caller's system would throw the answer away unread.
async fn linger(mut stream: TcpStream) {
    if stream.shutdown().await.is_ok() {
        let mut rest = stream.take(LINGER_BYTES);
        let mut nowhere = tokio::io::sink();
        let drained = tokio::io::copy(&mut rest, &mut nowhere);
        let _ = tokio::time::timeout(LINGER_TIMEOUT, drained).await;
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use axum::routing::get;

    use super::*;

    #[tokio::test]
    async fn a_connection_beyond_the_limit_waits_until_another_one_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "answer" }));
        let mut server = JoinSet::new();
        server.spawn(serve_at_once(1, listener, router, CancellationToken::new()));
        let ask = async || {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            stream
        };
        let mut byte = [0];
        let mut first = ask().await;
        first.read_exact(&mut byte).await.unwrap();
        let mut second = ask().await;
        let early = tokio::time::timeout(Duration::from_millis(100), second.read_exact(&mut byte)).await;
        assert!(early.is_err(), "answered beyond the limit");
        drop(first);
        tokio::time::timeout(Duration::from_secs(5), second.read_exact(&mut byte)).await.unwrap().unwrap();
    }
}
