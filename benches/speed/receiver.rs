//! A receiver that costs next to nothing: reads each request to its end and answers 200 on a kept connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::client::{content_length, end_of_head};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Listens on loopback until it is dropped.
pub struct Receiver {
    url: String,
    received: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Receiver {
    pub async fn start() -> Self {
        Self::watching(|_| {}).await
    }

    /// Shows each request, head and body as they came, to `watcher` before it is answered.
    pub async fn watching(watcher: impl Fn(&[u8]) + Clone + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on loopback");
        let url = format!("http://{}/in", listener.local_addr().expect("it has an address"));
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let accepting = tokio::spawn(async move {
            // Dropped together with this task, which ends the connections too.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (watcher, count) = (watcher.clone(), Arc::clone(&count));
                connections.spawn(async move { serve(stream, &watcher, &count).await });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { url, received, accepting }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Requests that were answered so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
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
        if stream.write_all(ANSWER).await.is_err() {
            return;
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}
