//! A client that costs next to nothing, so that what is measured is the server: HTTP/1.1 over one kept connection.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One connection.
pub struct Client {
    stream: TcpStream,
    /// Request lines end with this: host, token.
    head: String,
    buffer: Vec<u8>,
}

/// What a server said.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body of a success.
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert!(self.status < 300, "{}: {text}", self.status);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl Client {
    /// Connects; every request carries the token.
    pub async fn connect(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        stream.set_nodelay(true).expect("a socket option");
        let head = format!("host: {address}\r\nauthorization: Bearer {token}\r\n");
        Self { stream, head, buffer: Vec::with_capacity(4_096) }
    }

    /// A whole request that posts JSON, to be sent as often as one likes.
    pub fn prepared(&self, path: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "POST {path} HTTP/1.1\r\n{}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.head,
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    /// Sends a prepared request and waits for the answer.
    pub async fn send(&mut self, request: &[u8]) -> Answer {
        self.stream.write_all(request).await.expect("the server reads");
        self.answer().await
    }

    /// Posts JSON and waits for the answer.
    pub async fn post(&mut self, path: &str, body: &[u8]) -> Answer {
        let request = self.prepared(path, body);
        self.send(&request).await
    }

    async fn answer(&mut self) -> Answer {
        let head_end = loop {
            if let Some(at) = end_of_head(&self.buffer) {
                break at;
            }
            self.read_more().await;
        };
        let status = std::str::from_utf8(&self.buffer[9..12]).ok().and_then(|digits| digits.parse().ok());
        let status = status.expect("a status line");
        let length = content_length(&self.buffer[..head_end]).expect("the answer has a length");
        while self.buffer.len() < head_end + length {
            self.read_more().await;
        }
        let body = self.buffer[head_end..head_end + length].to_vec();
        self.buffer.drain(..head_end + length);
        Answer { status, body }
    }

    async fn read_more(&mut self) {
        let read = self.stream.read_buf(&mut self.buffer).await.expect("the server answers");
        assert!(read > 0, "the server closed the connection: {}", String::from_utf8_lossy(&self.buffer));
    }
}

/// Where the body of a message begins, once its head is there.
pub fn end_of_head(message: &[u8]) -> Option<usize> {
    message.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// The length that a head announces.
pub fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))?;
    std::str::from_utf8(&line[NAME.len()..]).ok()?.trim().parse().ok()
}
