//! A real HTTP/1.1 receiver on loopback: plays a list of replies, remembers every request byte for byte.
//!
//! It speaks over raw sockets, because half of what it must do no HTTP server would: stay silent, break off, dribble.
//! A request is remembered when it has been read completely, before its reply begins.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// How long [`Receiver::wait_for`] waits before it fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first byte of every TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// One request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// In the order of arrival, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header, which must not stand twice.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let first = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "header {name} stands twice");
        first
    }
}

/// What the receiver does with one request.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    held: bool,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    /// The whole answer.
    Whole,
    /// The body byte by byte, with this pause after each.
    Dribble(Duration),
    /// Half of the body, then a closed connection.
    BreakOff,
    /// No byte; the connection is reset.
    Reset,
    /// No byte; the connection stays open.
    Silence,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        let ending = Ending::Whole;
        Self { status, headers: Vec::new(), body: Vec::new(), delay: Duration::ZERO, held: false, ending }
    }

    /// A redirect to this URL.
    pub fn redirect(status: u16, url: &str) -> Self {
        Self::status(status).header("location", url)
    }

    /// Resets the connection instead of answering.
    pub fn reset() -> Self {
        Self { ending: Ending::Reset, ..Self::status(0) }
    }

    /// Never answers.
    pub fn silence() -> Self {
        Self { ending: Ending::Silence, ..Self::status(0) }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits before the head is sent.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits for [`Receiver::release`] before the head is sent.
    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }

    /// Sends the body byte by byte, pausing after each.
    pub fn dribble(mut self, pause: Duration) -> Self {
        self.ending = Ending::Dribble(pause);
        self
    }

    /// Closes the connection in the middle of the body.
    pub fn break_off(mut self) -> Self {
        self.ending = Ending::BreakOff;
        self
    }

    fn head(&self) -> String {
        // These two have no body, and so no length.
        let length = if matches!(self.status, 204 | 304) { None } else { Some(self.body.len().to_string()) };
        let length = length.iter().map(|length| ("content-length", length.as_str()));
        let given = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let lines: Vec<String> = length.chain(given).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("HTTP/1.1 {} Scripted\r\n{}\r\n", self.status, lines.concat())
    }
}

struct Shared {
    script: Mutex<VecDeque<Reply>>,
    default: Mutex<Reply>,
    received: watch::Sender<Vec<Received>>,
    connections: watch::Sender<usize>,
    permits: Semaphore,
}

/// Listens until it is dropped.
pub struct Receiver {
    shared: Arc<Shared>,
    port: u16,
    accepting: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Receiver {
    /// Answers each request with 200.
    pub async fn start() -> Self {
        Self::playing([]).await
    }

    /// Plays these replies in the order in which requests arrive, then answers 200.
    pub async fn playing(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into_iter().collect()),
            default: Mutex::new(Reply::status(200)),
            received: watch::Sender::new(Vec::new()),
            connections: watch::Sender::new(0),
            permits: Semaphore::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { shared, port, accepting }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds a reply to the end of the script.
    pub fn then(&self, reply: Reply) {
        self.shared.script.lock().unwrap().push_back(reply);
    }

    /// What requests get when the script is used up.
    pub fn set_default(&self, reply: Reply) {
        *self.shared.default.lock().unwrap() = reply;
    }

    /// Lets this many held replies go.
    pub fn release(&self, replies: usize) {
        self.shared.permits.add_permits(replies);
    }

    /// Lets every held reply go, now and later.
    pub fn release_all(&self) {
        self.shared.permits.close();
    }

    /// All requests so far, in the order of arrival.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.borrow().clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        *self.shared.connections.borrow()
    }

    /// Waits until at least this many requests have arrived and returns all; fails the test when they do not.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        let mut watcher = self.shared.received.subscribe();
        let arrived = tokio::time::timeout(PATIENCE, watcher.wait_for(|received| received.len() >= count)).await;
        let Ok(received) = arrived else {
            panic!("waited for {count} requests, got {}", self.received().len());
        };
        received.unwrap().clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped together with the receiver, which ends the connections too.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        shared.connections.send_modify(|count| *count += 1);
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // An error means that the client has gone, which is its right.
            let _ = serve(stream, &shared).await;
        });
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await? {
        shared.received.send_modify(|received| received.push(request));
        let scripted = shared.script.lock().unwrap().pop_front();
        let reply = scripted.unwrap_or_else(|| shared.default.lock().unwrap().clone());
        if reply.held
            && let Ok(permit) = shared.permits.acquire().await
        {
            permit.forget();
        }
        tokio::time::sleep(reply.delay).await;
        if !play(&mut stream, &reply).await? {
            break;
        }
    }
    Ok(())
}

/// Whether the connection goes on.
async fn play(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<bool> {
    match reply.ending {
        Ending::Whole => {
            stream.write_all(&[reply.head().as_bytes(), &reply.body].concat()).await?;
            Ok(true)
        }
        Ending::Dribble(pause) => {
            stream.write_all(reply.head().as_bytes()).await?;
            for byte in &reply.body {
                stream.write_all(&[*byte]).await?;
                tokio::time::sleep(pause).await;
            }
            Ok(true)
        }
        Ending::BreakOff => {
            stream.write_all(reply.head().as_bytes()).await?;
            stream.write_all(&reply.body[..reply.body.len() / 2]).await?;
            Ok(false)
        }
        Ending::Reset => {
            stream.set_zero_linger()?;
            Ok(false)
        }
        Ending::Silence => std::future::pending().await,
    }
}

/// Reads one request; `None` when the client has closed the connection between two.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<Received>> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
        if buffer.first() == Some(&TLS_HANDSHAKE) {
            // What web servers say to somebody who speaks TLS at a plain port.
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await?;
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, text)| text.parse().unwrap());
    let body_start = head_end + 4;
    while buffer.len() < body_start + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = buffer[body_start..body_start + length].to_vec();
    buffer.drain(..body_start + length);
    Ok(Some(Received { method, path, headers, body }))
}
