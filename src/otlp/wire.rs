//! Spans in the protobuf of OTLP 1: the few messages and fields that outboxd fills in.

use std::time::{SystemTime, UNIX_EPOCH};

use prost::{Message, Oneof};

use super::Ended;
use crate::span::{AttributeValue, SpanKind};

/// Bits 0 to 7 of a span's flags are those of its trace context; the next two say whether its parent, or what it links to,
/// is known to be elsewhere.
const SAMPLED: u32 = 1;
const SAYS_WHETHER_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The status of a span that failed.
const ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
#[allow(clippy::struct_field_names, reason = "the fields are called as in the protocol")]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Link {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(fixed32, tag = "6")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// The body of one export. `instance` tells this process from others of its kind.
pub(super) fn body(spans: Vec<Ended>, instance: &str) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let about = [("service.name", "outboxd"), ("service.version", version), ("service.instance.id", instance)];
    let attributes = about.into_iter().map(|(key, value)| pair((key, value.into()))).collect();
    let scope = Scope { name: "outboxd".to_owned(), version: version.to_owned() };
    let scope_spans = ScopeSpans { scope: Some(scope), spans: spans.into_iter().map(span).collect() };
    let resource_spans = ResourceSpans { resource: Some(Resource { attributes }), scope_spans: vec![scope_spans] };
    Request { resource_spans: vec![resource_spans] }.encode_to_vec()
}

fn span(Ended { span, at }: Ended) -> Span {
    let link = span.link.map(|link| Link {
        trace_id: link.context.trace_id().to_vec(),
        span_id: link.context.span_id().to_vec(),
        trace_state: link.tracestate.unwrap_or_default(),
        flags: u32::from(link.context.is_sampled()) | SAYS_WHETHER_REMOTE | IS_REMOTE,
    });
    let ended = nanos(at);
    Span {
        trace_id: span.context.trace_id().to_vec(),
        span_id: span.context.span_id().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.span_id().to_vec()).unwrap_or_default(),
        name: span.name,
        kind: kind(span.kind),
        start_time_unix_nano: ended.saturating_sub(u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX)),
        end_time_unix_nano: ended,
        attributes: span.attributes.into_iter().map(pair).collect(),
        links: link.into_iter().collect(),
        status: span.failure.map(|message| Status { message, code: ERROR }),
        flags: SAMPLED | SAYS_WHETHER_REMOTE,
    }
}

fn kind(kind: SpanKind) -> i32 {
    match kind {
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

fn pair((key, value): (&str, AttributeValue)) -> KeyValue {
    let value = match value {
        AttributeValue::Text(text) => Value::Text(text),
        AttributeValue::Number(number) => Value::Number(number),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

fn nanos(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
