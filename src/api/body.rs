//! JSON bodies, read strictly and within limits.
//!
//! A body is read after the caller's token was judged, at most up to the limit and for at most [`BODY_TIMEOUT`]; where the
//! token stands in the body itself, the limit is a small one. An empty body is no body, whatever its content type; any
//! other must be JSON, and a missing content type is taken for it. What is refused is named by its JSON pointer.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use super::ApiState;
use super::problem::{Answer, Code, Problem};

/// How long a body may take to arrive.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a body whose sender shows no token of this service beforehand.
const MAX_STRANGERS_BYTES: usize = 16 * 1024;
/// Characters of a parser's message that are repeated to the caller.
const MAX_DETAIL_CHARS: usize = 300;

/// Extracts a body that must be there.
pub(super) struct Json<T>(pub T);

/// Extracts a body that must be there, from a caller whom nobody has judged yet: it must be small.
pub(super) struct StrangersJson<T>(pub T);

/// Extracts a body that may be left out.
pub(super) struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<ApiState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        required(request, state.settings().max_body_bytes).await.map(Json)
    }
}

impl<T: DeserializeOwned> FromRequest<ApiState> for StrangersJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        let limit = state.settings().max_body_bytes.min(MAX_STRANGERS_BYTES);
        required(request, limit).await.map(StrangersJson)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<ApiState> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        match read(request, state.settings().max_body_bytes).await? {
            Some(bytes) => parse(&bytes).map(OptionalJson),
            None => Ok(OptionalJson(T::default())),
        }
    }
}

async fn required<T: DeserializeOwned>(request: Request, limit: usize) -> Answer<T> {
    let bytes = read(request, limit).await?.ok_or_else(|| Problem::invalid("a JSON body is required"))?;
    parse(&bytes)
}

/// The body's bytes; `None` when it is empty.
async fn read(request: Request, limit: usize) -> Answer<Option<Bytes>> {
    let (parts, body) = request.into_parts();
    // A length that is announced is refused before a byte of it is read.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let bytes = tokio::time::timeout(BODY_TIMEOUT, collect(body, limit))
        .await
        .map_err(|_| Problem::invalid("the body did not arrive within 30 seconds"))??;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json(&parts.headers) {
        return Err(Problem::new(Code::UnsupportedMediaType, "the content type must be application/json"));
    }
    Ok(Some(bytes))
}

async fn collect(body: Body, limit: usize) -> Answer<Bytes> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Err(_) => Err(Problem::invalid("the body ended before it was complete")),
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("the body exceeds {limit} bytes"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return true };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
}

/// Reads JSON text into a value. Payloads inside are kept as text and are not descended into.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::invalid("the body is not UTF-8"))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| refusal(&error))?;
    reader.end().map_err(|error| Problem::invalid(format!("the body is not one JSON value: {error}")))?;
    Ok(value)
}

/// Syntax errors belong to the body, all others to a field.
fn refusal(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let inner = error.inner();
    let message = inner.to_string();
    if !inner.is_data() {
        return Problem::invalid(format!("the body is not JSON: {}", shortened(&message)));
    }
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let mut pointer = pointer(error.path());
    for kind in ["unknown field `", "missing field `", "duplicate field `"] {
        let name = message.strip_prefix(kind).and_then(|rest| rest.split_once('`')).map(|(name, _)| name);
        let Some(name) = name else { continue };
        let segment = format!("/{}", escaped(&shortened(name)));
        if !pointer.ends_with(&segment) {
            pointer.push_str(&segment);
        }
    }
    Problem::field(pointer, shortened(message))
}

fn pointer(path: &Path) -> String {
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", escaped(&shortened(key))),
            Segment::Enum { .. } | Segment::Unknown => String::new(),
        })
        .collect()
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_DETAIL_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        payload: Box<RawValue>,
        #[serde(default)]
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(rename = "number")]
        _number: i32,
    }

    fn refused_pointer(text: &[u8]) -> Option<String> {
        let body = serde_json::to_value(parse::<Example>(text).unwrap_err().body("r")).unwrap();
        body["errors"][0]["pointer"].as_str().map(str::to_owned)
    }

    #[test]
    fn a_payload_is_kept_byte_for_byte() {
        let raw = r#"{ "n":9007199254740993,"a":1.0,"a" : 2, "e":"\u00e9" }"#;
        let example: Example = parse(format!(r#"{{"payload": {raw} }}"#).as_bytes()).unwrap();
        assert_eq!((example.payload.get(), example.inner.len()), (raw, 0));
    }

    #[test]
    fn the_refused_field_is_named_wherever_it_stands() {
        for (text, pointer) in [
            (r#"{"payload":1,"foo":2}"#, "/foo"),
            (r#"{"payload":1,"inner":[{"number":1},{"number":"1"}]}"#, "/inner/1/number"),
            (r#"{"payload":1,"inner":[{"number":1,"a/b":1}]}"#, "/inner/0/a~1b"),
            (r#"{"payload":1,"inner":[{}]}"#, "/inner/0/number"),
            (r#"{"inner":[]}"#, "/payload"),
            (r#"{"payload":1,"payload":1}"#, "/payload"),
        ] {
            assert_eq!(refused_pointer(text.as_bytes()).as_deref(), Some(pointer), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_json_text_is_refused() {
        for text in [&b"{"[..], b"{\"payload\":1} x", b"{\"payload\":\"\xff\"}", b"nul", b"{\"payload\":01}"] {
            assert_eq!(refused_pointer(text), None, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_payload_that_nests_a_hundred_thousand_deep_does_not_overflow_the_stack() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(parse::<Example>(format!(r#"{{"payload":{deep}}}"#).as_bytes()).is_ok());
    }
}
