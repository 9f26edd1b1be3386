//! A real headless Chromium, driven over WebDriver. A missing browser fails the test; `scripts/test` installs it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::http::Method;
use fantoccini::elements::Element;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long a test waits for what must come: long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A browser with one window; gone when the test ends.
pub struct Browser {
    client: Client,
    _session: Session,
}

/// The driver's process and its session. The browser is the driver's child, and ends with the session alone.
struct Session {
    driver: Child,
    address: SocketAddr,
    id: String,
}

impl Session {
    /// Ends the session, and the browser with it. The driver answers when that is done, and then keeps the connection.
    fn end(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "DELETE /session/{} HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\n\r\n", self.id, self.address)?;
        stream.read(&mut [0; 1024]).map(drop)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.end();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    /// Starts one.
    pub async fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium and chromium-driver are installed (scripts/test does)");
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = |line: String| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok();
        let port: u16 = lines.map_while(Result::ok).find_map(port).expect("the driver names its port");
        let mut session = Session { driver, address: SocketAddr::from(([127, 0, 0, 1], port)), id: String::new() };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities())
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        session.id = client.session_id().await.unwrap().unwrap();
        let browser = Self { client, _session: session };
        browser.window(1280, 900).await;
        browser
    }

    pub async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    pub async fn url(&self) -> String {
        self.client.current_url().await.unwrap().to_string()
    }

    /// A window of this size; below 600 it is a phone.
    pub async fn window(&self, width: u32, height: u32) {
        let phone = width < 600;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// `light` or `dark`.
    pub async fn colours(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Runs a function's body in the page; `arguments` are its arguments.
    pub async fn run<T: DeserializeOwned>(&self, body: &str, arguments: Vec<Value>) -> T {
        serde_json::from_value(self.client.execute(body, arguments).await.unwrap()).unwrap()
    }

    /// The same where the last argument is a function to call with the result.
    pub async fn run_async<T: DeserializeOwned>(&self, body: &str, arguments: Vec<Value>) -> T {
        serde_json::from_value(self.client.execute_async(body, arguments).await.unwrap()).unwrap()
    }

    /// Calls what a module of the page exports.
    pub async fn call(&self, module: &str, function: &str, arguments: Vec<Value>) -> Value {
        let body = "const [module, name, given, done] = arguments;
            import(new URL(`page/${module}`, document.baseURI))
                .then((its) => its[name](...given))
                .then((result) => done({ result: result ?? null }), (error) => done({ error: String(error) }));";
        let answer = self.client.execute_async(body, vec![module.into(), function.into(), arguments.into()]).await;
        let mut answer = answer.unwrap();
        assert_eq!(answer.get("error"), None, "{module} {function}");
        answer["result"].take()
    }

    /// The one element that is visible under this selector; waits for it.
    pub async fn element(&self, selector: &str) -> Element {
        self.until(selector, async || {
            let found = self.client.find_all(Locator::Css(selector)).await.ok()?;
            for element in found {
                if element.is_displayed().await.ok()? {
                    return Some(element);
                }
            }
            None
        })
        .await
    }

    /// Clicks, again when the page has just drawn anew what is to be clicked.
    pub async fn click(&self, selector: &str) {
        self.until(selector, async || self.element(selector).await.click().await.ok()).await;
    }

    pub async fn write(&self, selector: &str, text: &str) {
        self.element(selector).await.send_keys(text).await.unwrap();
    }

    /// Presses keys wherever the focus is.
    pub async fn press(&self, keys: &str) {
        self.client.active_element().await.unwrap().send_keys(keys).await.unwrap();
    }

    /// What the page shows of this element; waits for it to stand there.
    pub async fn text(&self, selector: &str) -> String {
        let body = "return document.querySelector(arguments[0])?.innerText ?? null";
        self.until(selector, async || self.run::<Option<String>>(body, vec![selector.into()]).await).await
    }

    /// Waits until the element shows this text.
    pub async fn shows(&self, selector: &str, text: &str) {
        let looked = Instant::now();
        loop {
            let shown = self.text(selector).await;
            if shown.contains(text) {
                return;
            }
            assert!(looked.elapsed() < PATIENCE, "{selector} does not show {text:?} but {shown:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until the element is gone or hidden.
    pub async fn hides(&self, selector: &str) {
        let body = "return !document.querySelector(arguments[0])?.checkVisibility()";
        self.until(selector, async || self.run::<bool>(body, vec![selector.into()]).await.then_some(())).await;
    }

    /// The text of a dialog that some script has opened.
    pub async fn alert(&self) -> Option<String> {
        self.client.get_alert_text().await.ok()
    }

    /// What the browser's console has said since the last time: errors of scripts, and what the policy has refused.
    pub async fn complaints(&self) -> Vec<String> {
        let entries = self.command("se/log", json!({"type": "browser"})).await;
        let message = |entry: &Value| entry["message"].as_str().unwrap_or_default().to_owned();
        entries.as_array().unwrap().iter().map(message).collect()
    }

    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let looked = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(looked.elapsed() < PATIENCE, "waited for {what}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn devtools(&self, name: &str, parameters: Value) {
        self.command("goog/cdp/execute", json!({"cmd": name, "params": parameters})).await;
    }

    async fn command(&self, path: &'static str, body: Value) -> Value {
        self.client.issue_cmd(Extension { path, body }).await.unwrap()
    }
}

fn capabilities() -> Capabilities {
    // Tests run as root too, where the browser's own sandbox does not start, and with little shared memory.
    let arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
    let capabilities = json!({
        "goog:chromeOptions": {"args": arguments},
        "goog:loggingPrefs": {"browser": "ALL"},
        "unhandledPromptBehavior": "ignore",
    });
    serde_json::from_value(capabilities).unwrap()
}

/// A command of this driver that the standard does not know.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _url: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
