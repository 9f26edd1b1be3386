//! The dashboard at `/`: one page with its script modules and its style, kept inside the program.
//!
//! The files hold no data and are the same for everybody, so that they ask for no token; the page reads the public
//! interface with the token that its user types. It may run nothing but its own modules, talk to nobody but this
//! server, and stand in no frame. Browsers keep the files but ask each time whether they are still the same, so that a
//! new version of the program is never mixed with files of the old one.

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// One file of the page.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
    etag: String,
}

impl Asset {
    fn new((path, content_type, text): (&'static str, &'static str, &'static str)) -> Self {
        let etag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes())));
        Self { path, content_type, text, etag }
    }
}

/// A file of the page below `/page/`.
macro_rules! asset {
    ($content_type:ident, $name:literal) => {
        (concat!("/page/", $name), $content_type, include_str!($name))
    };
}

static INDEX: LazyLock<Asset> = LazyLock::new(|| Asset::new(("/", HTML, include_str!("index.html"))));

static FILES: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = [
        asset!(CSS, "page.css"),
        asset!(SCRIPT, "bulk.js"),
        asset!(SCRIPT, "changes.js"),
        asset!(SCRIPT, "chart.js"),
        asset!(SCRIPT, "client.js"),
        asset!(SCRIPT, "confirm.js"),
        asset!(SCRIPT, "dead_letters.js"),
        asset!(SCRIPT, "discards.js"),
        asset!(SCRIPT, "dom.js"),
        asset!(SCRIPT, "event.js"),
        asset!(SCRIPT, "events_table.js"),
        asset!(SCRIPT, "hour.js"),
        asset!(SCRIPT, "json_text.js"),
        asset!(SCRIPT, "lanes.js"),
        asset!(SCRIPT, "main.js"),
        asset!(SCRIPT, "notice.js"),
        asset!(SCRIPT, "outboxes.js"),
        asset!(SCRIPT, "run_now.js"),
        asset!(SCRIPT, "runs.js"),
        asset!(SCRIPT, "search.js"),
        asset!(SCRIPT, "session.js"),
        asset!(SCRIPT, "time.js"),
        asset!(SCRIPT, "token_form.js"),
        asset!(SCRIPT, "verdict.js"),
        asset!(SCRIPT, "verdict_view.js"),
        asset!(SCRIPT, "watch.js"),
        asset!(SCRIPT, "words.js"),
    ];
    files.into_iter().map(Asset::new).collect()
});

/// The dashboard: a page without data. Its scripts and its style stand below `/page/`.
#[utoipa::path(
    get, path = "/", tag = "page", operation_id = "dashboard", security(()),
    responses((status = 200, description = "HTML.", body = String, content_type = "text/html"))
)]
pub(super) async fn dashboard(headers: HeaderMap) -> Response {
    answer(&INDEX, &headers)
}

/// A path for each of the page's files.
pub(super) fn files<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |routes, asset| {
        routes.route(asset.path, get(move |headers: HeaderMap| async move { answer(asset, &headers) }))
    })
}

fn answer(asset: &'static Asset, request: &HeaderMap) -> Response {
    let mut response = if is_known(request, &asset.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(asset.text).into_response()
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if let Ok(etag) = HeaderValue::from_str(&asset.etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Whether the browser says that it holds this very file.
fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let given = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|list| list.split(',')).any(|one| one.trim().trim_start_matches("W/") == etag || one.trim() == "*")
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    async fn get_style(known: Option<&str>) -> (StatusCode, HeaderMap, usize) {
        let mut request = Request::get("/page/page.css");
        if let Some(etag) = known {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let request = request.body(Body::empty()).unwrap();
        let (parts, body) = files::<()>().oneshot(request).await.unwrap().into_parts();
        (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().len())
    }

    #[tokio::test]
    async fn a_file_that_the_browser_holds_already_is_not_sent_again() {
        let (status, headers, length) = get_style(None).await;
        let etag = headers[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!((status, length > 1000), (StatusCode::OK, true));
        for known in [etag.clone(), format!("W/{etag}"), format!("\"another\", {etag}"), "*".to_owned()] {
            let (status, headers, length) = get_style(Some(&known)).await;
            assert_eq!((status, length), (StatusCode::NOT_MODIFIED, 0), "{known}");
            assert_eq!(headers[header::ETAG], etag);
        }
        assert_eq!(get_style(Some("\"another\"")).await.0, StatusCode::OK);
    }

    #[test]
    fn nothing_in_the_page_would_need_a_looser_policy() {
        assert!(!INDEX.text.contains("<script>") && !INDEX.text.contains("style="));
        for file in FILES.iter().chain([&*INDEX]) {
            for word in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"]
            {
                let text = file.text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains(word), "{} has {word}", file.path);
            }
        }
    }
}
