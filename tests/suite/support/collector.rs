//! A real collector of spans on loopback: a receiver whose requests are decoded by the protocol's own types.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::receiver::{Received, Receiver, Reply};

/// Listens until it is dropped.
pub struct Collector {
    receiver: Receiver,
}

impl Collector {
    /// Takes everything.
    pub async fn start() -> Self {
        Self { receiver: Receiver::start().await }
    }

    /// Answers each request so.
    pub async fn answering(reply: Reply) -> Self {
        let receiver = Receiver::start().await;
        receiver.set_default(reply);
        Self { receiver }
    }

    /// What the setting says.
    pub fn endpoint(&self) -> String {
        self.receiver.url("")
    }

    /// Requests so far.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Received> {
        self.receiver.wait_for(count).await
    }

    /// Waits until so many spans of this operation have come, and returns them in the order in which they ended.
    pub async fn spans(&self, operation: &str, count: usize) -> Vec<Span> {
        let mut requests = 1;
        loop {
            let received = self.receiver.wait_for(requests).await;
            let mut spans = decoded(&received);
            spans.retain(|span| text(span, "messaging.operation.name") == operation);
            if spans.len() >= count {
                spans.sort_by_key(|span| span.end_time_unix_nano);
                return spans;
            }
            requests = received.len() + 1;
        }
    }
}

fn decoded(received: &[Received]) -> Vec<Span> {
    let each = received.iter().flat_map(|request| {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        let export = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
        export.resource_spans.into_iter().flat_map(|part| {
            let attributes = part.resource.unwrap().attributes;
            let service = attributes.iter().find(|pair| pair.key == "service.name").unwrap();
            assert_eq!(service.value.clone().unwrap().value, Some(Value::StringValue("outboxd".to_owned())));
            part.scope_spans.into_iter().flat_map(|scope| scope.spans)
        })
    });
    each.collect()
}

/// The text of an attribute; empty when there is none.
pub fn text(span: &Span, name: &str) -> String {
    match attribute(span, name) {
        Some(Value::StringValue(text)) => text,
        None => String::new(),
        Some(other) => panic!("{name} is no text: {other:?}"),
    }
}

/// The number of an attribute.
pub fn number(span: &Span, name: &str) -> Option<i64> {
    match attribute(span, name)? {
        Value::IntValue(number) => Some(number),
        other => panic!("{name} is no number: {other:?}"),
    }
}

fn attribute(span: &Span, name: &str) -> Option<Value> {
    let mut found = span.attributes.iter().filter(|pair| pair.key == name);
    let value = found.next()?.value.clone()?.value;
    assert!(found.next().is_none(), "{name} stands twice");
    value
}

/// The `traceparent` that names this span.
pub fn traceparent(trace: &[u8], span: &[u8]) -> String {
    let (trace, span) = (trace.try_into().unwrap(), span.try_into().unwrap());
    format!("00-{:032x}-{:016x}-01", u128::from_be_bytes(trace), u64::from_be_bytes(span))
}
