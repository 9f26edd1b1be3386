//! A span: one piece of work as tracing tools see it, with the words that OpenTelemetry's messaging conventions have for it.
//!
//! Here is only what a span is. The processor makes them where there is a tracer to take them; without one nothing of this
//! is ever made.

use std::time::Duration;

/// Which span of which trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    trace: u128,
    span: u64,
    sampled: bool,
}

impl SpanContext {
    /// The first span of a new trace, sampled.
    #[must_use]
    pub fn root() -> Self {
        Self { trace: fastrand::u128(1..), span: fastrand::u64(1..), sampled: true }
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn child(self) -> Self {
        Self { span: fastrand::u64(1..), ..self }
    }

    /// Reads the fields of a `traceparent` header that is known to be one.
    #[must_use]
    pub(crate) fn parse(traceparent: &str) -> Option<Self> {
        let mut fields = traceparent.split('-').skip(1);
        let trace = u128::from_str_radix(fields.next()?, 16).ok()?;
        let span = u64::from_str_radix(fields.next()?, 16).ok()?;
        let flags = u8::from_str_radix(fields.next()?, 16).ok()?;
        Some(Self { trace, span, sampled: flags & 1 == 1 })
    }

    /// The header that names it.
    #[must_use]
    pub fn traceparent(self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }

    /// The trace, as it goes over the wire.
    #[must_use]
    pub fn trace_id(self) -> [u8; 16] {
        self.trace.to_be_bytes()
    }

    /// The span, as it goes over the wire.
    #[must_use]
    pub fn span_id(self) -> [u8; 8] {
        self.span.to_be_bytes()
    }

    /// Whether somebody wants to see this trace.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.sampled
    }
}

/// Work of another trace that a span is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The span there.
    pub context: SpanContext,
    /// Its `tracestate`.
    pub tracestate: Option<String>,
}

/// How a span stands to what is on the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Gives a message to somebody, who continues from this span.
    Producer,
    /// Takes messages and works them off.
    Consumer,
    /// Asks somebody and waits for the answer.
    Client,
}

/// What an attribute says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// What outboxd does with messages. The conventions have one word for the name and the type of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// One attempt to deliver one event.
    Send,
    /// One run.
    Process,
    /// One statement that writes what came of attempts.
    Settle,
}

impl Operation {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Process => "process",
            Self::Settle => "settle",
        }
    }

    fn kind(self) -> SpanKind {
        match self {
            Self::Send => SpanKind::Producer,
            Self::Process => SpanKind::Consumer,
            Self::Settle => SpanKind::Client,
        }
    }
}

/// A piece of work that has just ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Which one it is.
    pub context: SpanContext,
    /// The span of the same trace that it is a part of.
    pub parent: Option<SpanContext>,
    /// The operation and what it was done on.
    pub name: String,
    /// How it stands to the other side.
    pub kind: SpanKind,
    /// How long the work took.
    pub took: Duration,
    /// What it is about.
    pub link: Option<Link>,
    /// What there is to say of it.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// What went wrong, when something did; holds no secret.
    pub failure: Option<String>,
}

impl Span {
    /// A span with the attributes that all have.
    #[must_use]
    pub fn new(context: SpanContext, operation: Operation, outbox: &str, took: Duration) -> Self {
        let word = operation.as_str();
        let attributes = vec![
            ("messaging.system", "outboxd".into()),
            ("messaging.operation.name", word.into()),
            ("messaging.operation.type", word.into()),
            ("messaging.destination.name", outbox.into()),
        ];
        let (name, kind) = (format!("{word} {outbox}"), operation.kind());
        Self { context, parent: None, name, kind, took, link: None, attributes, failure: None }
    }

    /// Adds an attribute.
    pub fn say(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        self.attributes.push((name, value.into()));
    }

    /// Says what went wrong: a word that can be searched for, and the text.
    pub fn fail(&mut self, error_type: impl Into<AttributeValue>, text: impl Into<String>) {
        self.say("error.type", error_type);
        self.failure = Some(text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_reads_back_from_its_header() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        let context = SpanContext::parse(text).unwrap();
        assert_eq!(context.traceparent(), text);
        assert!(context.is_sampled() && !SpanContext::parse(&text.replace("-01", "-02")).unwrap().is_sampled());
        let root = SpanContext::root();
        assert_eq!(SpanContext::parse(&root.traceparent()), Some(root));
        assert_eq!(root.child().trace_id(), root.trace_id());
        assert_ne!(root.child().span_id(), root.span_id());
    }
}
