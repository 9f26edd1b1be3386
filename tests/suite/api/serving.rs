//! The listening side, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use outboxd::api::serve;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

async fn start(router: Router) -> (SocketAddr, CancellationToken, JoinSet<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let mut server = JoinSet::new();
    server.spawn(serve(listener, router, stop.clone()));
    (address, stop, server)
}

async fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_under_way_is_answered_after_the_stop() {
    let (begun, has_begun) = oneshot::channel();
    let (go_on, may_go_on) = oneshot::channel::<()>();
    let slots = std::sync::Arc::new(std::sync::Mutex::new(Some((begun, may_go_on))));
    let router = Router::new().route(
        "/",
        get(async move || {
            let (begun, may_go_on) = slots.lock().unwrap().take().unwrap();
            begun.send(()).unwrap();
            may_go_on.await.unwrap();
            "done"
        }),
    );
    let (address, stop, mut server) = start(router).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    has_begun.await.unwrap();
    stop.cancel();
    go_on.send(()).unwrap();
    let answer = read_to_end(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    server.join_next().await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_never_ends_its_request_does_not_hold_up_the_stop() {
    let (address, stop, mut server) = start(Router::new()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(5), server.join_next()).await.unwrap().unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_is_dropped_when_its_caller_hangs_up() {
    struct Dropped(Option<oneshot::Sender<()>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (begun, has_begun) = oneshot::channel();
    let (dropped, is_dropped) = oneshot::channel();
    let slots = std::sync::Arc::new(std::sync::Mutex::new(Some((begun, Dropped(Some(dropped))))));
    let router = Router::new().route(
        "/",
        get(async move || {
            let (begun, _guard) = slots.lock().unwrap().take().unwrap();
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        }),
    );
    let (address, _stop, _server) = start(router).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    has_begun.await.unwrap();
    drop(stream);
    tokio::time::timeout(Duration::from_secs(5), is_dropped).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_arrive_in_time_ends_the_connection() {
    let (address, _stop, _server) = start(Router::new()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    tokio::time::timeout(Duration::from_secs(15), read_to_end(stream)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_whose_body_is_refused_unread_may_finish_sending_and_reads_why() {
    let router = Router::new().route("/", get(|| async { "done" }));
    let (address, _stop, _server) = start(router).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = vec![b'x'; 1024 * 1024];
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    // Nothing is read before all is sent, as many clients do it; the answer has long been given by then.
    stream.readable().await.unwrap();
    for part in body.chunks(64 * 1024) {
        stream.write_all(part).await.unwrap();
    }
    let answer = read_to_end(stream).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}
