//! A receiver that costs next to nothing: reads each request to its end and answers 200 on a kept connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::client::{content_length, end_of_head};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Listens on loopback until it is dropped.
///
/// It has a thread of its own, as a receiver in the world has a machine of its own: on the runtime of a sender in this
/// process it would be woken for nothing, which no sender in another process could match.
pub struct Receiver {
    url: String,
    received: Arc<AtomicU64>,
    /// Its drop ends the thread.
    _open: oneshot::Sender<()>,
}

impl Receiver {
    pub async fn start() -> Self {
        Self::watching(|_| {}).await
    }

    /// Shows each request, head and body as they came, to `watcher` before it is answered.
    #[allow(clippy::unused_async, reason = "callers need not know how it is started")]
    pub async fn watching(watcher: impl Fn(&[u8]) + Clone + Send + Sync + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        listener.set_nonblocking(true).expect("a socket option");
        let url = format!("http://{}/in", listener.local_addr().expect("it has an address"));
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let (open, closed) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = accept(listener, watcher, count) => {}
                    _ = closed => {}
                }
            });
        });
        Self { url, received, _open: open }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Requests that came so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, watcher: impl Fn(&[u8]) + Clone + Send + Sync + 'static, count: Arc<AtomicU64>) {
    // Dropped together with this future, which ends the connections too.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (watcher, count) = (watcher.clone(), Arc::clone(&count));
        connections.spawn(async move { serve(stream, &watcher, &count).await });
        while connections.try_join_next().is_some() {}
    }
}

/// Ends when the sender closes.
async fn serve(mut stream: TcpStream, watcher: &(impl Fn(&[u8]) + Sync), count: &AtomicU64) {
    stream.set_nodelay(true).expect("a socket option");
    let mut buffer = Vec::with_capacity(4_096);
    loop {
        let length = loop {
            if let Some(head) = end_of_head(&buffer) {
                let length = head + content_length(&buffer[..head]).unwrap_or(0);
                if buffer.len() >= length {
                    break length;
                }
            }
            if !matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {
                return;
            }
        };
        watcher(&buffer[..length]);
        buffer.drain(..length);
        count.fetch_add(1, Ordering::Relaxed);
        if stream.write_all(ANSWER).await.is_err() {
            return;
        }
    }
}
