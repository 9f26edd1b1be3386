//! The HTTP interface against a real database, through the router and through real sockets.

mod accepted;
mod dead_letter_bulk;
mod dead_letters;
mod event_list;
mod events;
mod outboxes;
mod process;
mod serving;
mod stats;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use http_body_util::BodyExt as _;
use outboxd::api::{ApiSettings, Token, router};
use outboxd::handler::{Discard, Handler, Pattern, Registry, Route};
use outboxd::processor::{Processor, ProcessorSettings};
use outboxd::store::{Store, StoreOptions, connect};
use serde_json::Value;
use tower::ServiceExt as _;

/// The interface over a database file of its own.
pub struct Api {
    pub router: Router,
    pub processor: Processor,
    pub store: Arc<dyn Store>,
    folder: tempfile::TempDir,
}

impl Api {
    /// Everything is open, every type is delivered at once.
    pub async fn open() -> Self {
        Self::with(Vec::new(), Arc::new(Discard)).await
    }

    pub async fn with(tokens: Vec<Token>, handler: Arc<dyn Handler>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("outboxd.db").display());
        let store = connect(&StoreOptions::new(url)).await.unwrap();
        store.migrate().await.unwrap();
        let registry = Registry::new(vec![Route::new("all", vec![Pattern::All], handler)]).unwrap();
        let processor = Processor::new(Arc::clone(&store), registry, ProcessorSettings::default()).unwrap();
        let router = router(ApiSettings { tokens, ..ApiSettings::default() }, processor.clone());
        Self { router, processor, store, folder }
    }

    /// Sends a request and returns the answer with its body as text.
    pub async fn send(&self, request: Request<Body>) -> Response<String> {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Response::from_parts(parts, String::from_utf8(bytes.to_vec()).unwrap())
    }

    pub async fn get(&self, path: &str) -> Response<String> {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &str) -> Response<String> {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Enqueues an event and returns its id.
    pub async fn enqueue(&self, body: &str) -> String {
        let answer = self.post("/v1/events", body).await;
        assert_eq!(answer.status(), 201, "{}", answer.body());
        json(&answer)["id"].as_str().unwrap().to_owned()
    }
}

pub fn json(answer: &Response<String>) -> Value {
    serde_json::from_str(answer.body()).unwrap()
}
