//! The few commands of WebDriver (a W3C standard: JSON over HTTP) that these tests need, to a driver of their own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

/// How long the driver may take for one command; a script that waits for something has as long.
const PATIENCE: Duration = Duration::from_secs(60);
/// The name under which the standard sends an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A driver's process and its one session. The browser is the driver's child, and ends with the session alone.
pub struct WebDriver {
    process: Child,
    address: SocketAddr,
    session: String,
}

/// An element of the page, as the driver names it.
#[derive(Debug, Clone)]
pub struct Element(String);

/// What the driver could not do, in the standard's words.
#[derive(Debug)]
#[expect(dead_code, reason = "read in the messages of tests that fail")]
pub struct Refused {
    error: String,
    message: String,
}

impl WebDriver {
    /// Starts a driver, and a browser with one window.
    pub async fn start() -> Self {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium and chromium-driver are installed (scripts/test does)");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = |line: String| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok();
        let port: u16 = lines.map_while(Result::ok).find_map(port).expect("the driver names its port");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut driver = Self { process, address, session: String::new() };
        let answer = driver.send("POST", "/session", json!({"capabilities": {"alwaysMatch": capabilities()}})).await;
        answer.unwrap()["sessionId"].as_str().unwrap().clone_into(&mut driver.session);
        driver
    }

    /// A command of the session without a body.
    pub async fn get(&self, path: &str) -> Result<Value, Refused> {
        self.send("GET", &format!("/session/{}/{path}", self.session), Value::Null).await
    }

    /// A command of the session with one.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value, Refused> {
        self.send("POST", &format!("/session/{}/{path}", self.session), body).await
    }

    /// All elements under this selector, in the order of the page.
    pub async fn find(&self, selector: &str) -> Result<Vec<Element>, Refused> {
        let found = self.post("elements", json!({"using": "css selector", "value": selector})).await?;
        Ok(found.as_array().unwrap().iter().map(Element::of).collect())
    }

    /// The element that has the focus.
    pub async fn focused(&self) -> Result<Element, Refused> {
        Ok(Element::of(&self.get("element/active").await?))
    }

    /// Whether somebody would see the element.
    pub async fn is_visible(&self, element: &Element) -> Result<bool, Refused> {
        Ok(self.get(&format!("element/{}/displayed", element.0)).await? == true)
    }

    pub async fn click(&self, element: &Element) -> Result<(), Refused> {
        self.post(&format!("element/{}/click", element.0), json!({})).await.map(drop)
    }

    /// Types into the element.
    pub async fn write(&self, element: &Element, text: &str) -> Result<(), Refused> {
        self.post(&format!("element/{}/value", element.0), json!({"text": text})).await.map(drop)
    }

    /// Empties the element.
    pub async fn clear(&self, element: &Element) -> Result<(), Refused> {
        self.post(&format!("element/{}/clear", element.0), json!({})).await.map(drop)
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Result<Value, Refused> {
        let exchange = self.exchange(method, path, if body.is_null() { String::new() } else { body.to_string() });
        let (is_done, answer) = tokio::time::timeout(PATIENCE, exchange).await.expect("the driver answers").unwrap();
        let mut answer: Value = serde_json::from_slice(&answer).unwrap();
        let value = answer["value"].take();
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        if is_done { Ok(value) } else { Err(Refused { error: text("error"), message: text("message") }) }
    }

    /// One request and its answer, on a connection of its own that the driver keeps open.
    async fn exchange(&self, method: &str, path: &str, body: String) -> std::io::Result<(bool, Vec<u8>)> {
        let mut stream = tokio::io::BufReader::new(tokio::net::TcpStream::connect(self.address).await?);
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", self.address);
        let length = body.len();
        stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).await?;
        let mut status = String::new();
        stream.read_line(&mut status).await?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            match line.trim_end().to_lowercase().split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).await?;
        Ok((status.contains(" 200 "), answer))
    }

    /// Ends the session, and the browser with it. The driver answers when that is done, and keeps the connection.
    fn end(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!("DELETE /session/{} HTTP/1.1\r\nhost: {}\r\n", self.session, self.address);
        write!(stream, "{head}content-length: 0\r\n\r\n")?;
        stream.read(&mut [0; 1024]).map(drop)
    }
}

impl Drop for WebDriver {
    fn drop(&mut self) {
        let _ = self.end();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Element {
    fn of(value: &Value) -> Self {
        Self(value[ELEMENT].as_str().unwrap().to_owned())
    }
}

fn capabilities() -> Value {
    // Tests run as root too, where the browser's own sandbox does not start, and with little shared memory.
    let arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
    json!({
        "goog:chromeOptions": {"args": arguments},
        "goog:loggingPrefs": {"browser": "ALL"},
        "unhandledPromptBehavior": "ignore",
    })
}
