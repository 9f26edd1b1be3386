//! What surrounds every request: its id, the headers of every answer, and the last word on what goes wrong.
//!
//! Problems are written here, because their bodies carry the request's id; a panic becomes one, too. What an operator
//! has to know is logged here once, under the same id. Requests that succeed are not logged.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use futures_util::FutureExt as _;
use uuid::Uuid;

use super::problem::Problem;
use crate::metrics;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID_BYTES: usize = 128;
const MAX_LOGGED_PATH_CHARS: usize = 200;

/// Runs a request inside its context.
pub(super) async fn surround(mut request: Request, next: Next) -> Response<Body> {
    let id = request_id(request.headers().get(REQUEST_ID));
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let (method, path) = (request.method().clone(), shortened(request.uri().path()));
    let began = Instant::now();
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| Problem::internal("a request handler panicked").into_response());
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let id = id.to_str().unwrap_or_default();
        log(&problem, id, method.as_str(), &path);
        *response.body_mut() = Body::from(serde_json::to_vec(&problem.body(id)).unwrap_or_default());
        response.headers_mut().remove(header::CONTENT_LENGTH);
        problem.add_headers(response.headers_mut());
    }
    let route = response.extensions_mut().remove::<Route>();
    let route = route.as_ref().map_or(NO_ROUTE, |route| route.0.as_str());
    metrics::http_request(route, known_method(&method), response.status().as_u16(), began.elapsed());
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // What is the same for everybody says so itself.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The pattern of the path that a request has met.
#[derive(Clone)]
struct Route(MatchedPath);

/// What requests that met no path are counted under.
const NO_ROUTE: &str = "none";

/// Tells [`surround`], which stands around the router, what the router has chosen.
pub(super) async fn note_route(request: Request, next: Next) -> Response<Body> {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(Route(route));
    }
    response
}

/// A method as a label: a caller may send any word for one.
fn known_method(method: &Method) -> &'static str {
    const KNOWN: [&str; 4] = ["GET", "POST", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// The caller's id if it is fit for a header and a log line, else a new one.
fn request_id(given: Option<&HeaderValue>) -> HeaderValue {
    let fit = |value: &&HeaderValue| {
        (1..=MAX_REQUEST_ID_BYTES).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    given.filter(fit).cloned().unwrap_or_else(|| {
        HeaderValue::from_str(&Uuid::now_v7().to_string()).unwrap_or(HeaderValue::from_static("unknown"))
    })
}

/// A path as the log shows it: a caller without any token could otherwise write 64 KiB into each line.
fn shortened(path: &str) -> String {
    path.chars().take(MAX_LOGGED_PATH_CHARS).collect()
}

fn log(problem: &Problem, request_id: &str, method: &str, path: &str) {
    let code = problem.code.as_str();
    let cause = problem.cause().unwrap_or_default();
    match problem.code.status() {
        StatusCode::INTERNAL_SERVER_ERROR => tracing::error!(request_id, method, path, cause, "request failed"),
        StatusCode::SERVICE_UNAVAILABLE => tracing::warn!(request_id, method, path, code, cause, "request turned away"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            tracing::warn!(request_id, method, path, code, "request without permission");
        }
        _ => tracing::debug!(request_id, method, path, code, "request refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfit_request_id_is_replaced() {
        let given = |text: &str| request_id(Some(&HeaderValue::from_bytes(text.as_bytes()).unwrap()));
        assert_eq!(given("abc-1"), "abc-1");
        for text in ["", "a b", "é", &"x".repeat(129)] {
            assert_ne!(given(text), text);
        }
        assert_ne!(request_id(None), request_id(None));
    }

    #[test]
    fn the_log_shows_the_beginning_of_a_long_path() {
        assert_eq!(shortened("/v1/events"), "/v1/events");
        assert_eq!(shortened(&"/ü".repeat(1000)), "/ü".repeat(100));
    }
}
