//! A real headless Chromium, driven over WebDriver. A missing browser fails the test; `scripts/test` installs it.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::webdriver::{Element, WebDriver};

/// How long a test waits for what must come: long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A browser with one window; gone when the test ends.
pub struct Browser {
    driver: WebDriver,
}

impl Browser {
    /// Starts one.
    pub async fn start() -> Self {
        let browser = Self { driver: WebDriver::start().await };
        browser.window(1280, 900).await;
        browser
    }

    pub async fn open(&self, url: &str) {
        self.driver.post("url", json!({"url": url})).await.unwrap();
    }

    pub async fn url(&self) -> String {
        self.driver.get("url").await.unwrap().as_str().unwrap().to_owned()
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
        self.execute("execute/sync", body, arguments).await
    }

    /// The same where the last argument is a function to call with the result.
    pub async fn run_async<T: DeserializeOwned>(&self, body: &str, arguments: Vec<Value>) -> T {
        self.execute("execute/async", body, arguments).await
    }

    /// Calls what a module of the page exports.
    pub async fn call(&self, module: &str, function: &str, arguments: Vec<Value>) -> Value {
        let body = "const [module, name, given, done] = arguments;
            import(new URL(`page/${module}`, document.baseURI))
                .then((its) => its[name](...given))
                .then((result) => done({ result: result ?? null }), (error) => done({ error: String(error) }));";
        let mut answer: Value = self.run_async(body, vec![module.into(), function.into(), arguments.into()]).await;
        assert_eq!(answer.get("error"), None, "{module} {function}");
        answer["result"].take()
    }

    /// The one element that is visible under this selector; waits for it.
    pub async fn element(&self, selector: &str) -> Element {
        self.until(selector, async || {
            for element in self.driver.find(selector).await.ok()? {
                if self.driver.is_visible(&element).await.ok()? {
                    return Some(element);
                }
            }
            None
        })
        .await
    }

    /// Clicks, again when the page has just drawn anew what is to be clicked.
    pub async fn click(&self, selector: &str) {
        self.until(selector, async || self.driver.click(&self.element(selector).await).await.ok()).await;
    }

    pub async fn write(&self, selector: &str, text: &str) {
        self.driver.write(&self.element(selector).await, text).await.unwrap();
    }

    /// Writes this in the place of what stands there.
    pub async fn rewrite(&self, selector: &str, text: &str) {
        self.driver.clear(&self.element(selector).await).await.unwrap();
        self.write(selector, text).await;
    }

    /// Presses keys wherever the focus is.
    pub async fn press(&self, keys: &str) {
        self.driver.write(&self.driver.focused().await.unwrap(), keys).await.unwrap();
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

    /// Waits until this function's body answers true.
    pub async fn holds(&self, body: &str, arguments: Vec<Value>) {
        self.until(body, async || self.run::<bool>(body, arguments.clone()).await.then_some(())).await;
    }

    /// The text of a dialog that some script has opened.
    pub async fn alert(&self) -> Option<String> {
        self.driver.get("alert/text").await.ok().map(|text| text.to_string())
    }

    /// What the browser's console has said since the last time: errors of scripts, and what the policy has refused.
    pub async fn complaints(&self) -> Vec<String> {
        let entries = self.driver.post("se/log", json!({"type": "browser"})).await.unwrap();
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

    async fn execute<T: DeserializeOwned>(&self, how: &str, body: &str, arguments: Vec<Value>) -> T {
        let answer = self.driver.post(how, json!({"script": body, "args": arguments})).await;
        serde_json::from_value(answer.unwrap()).unwrap()
    }

    /// A command of the browser's own, which the standard does not know.
    async fn devtools(&self, name: &str, parameters: Value) {
        self.driver.post("goog/cdp/execute", json!({"cmd": name, "params": parameters})).await.unwrap();
    }
}
