//! The JSON of an event that is to be enqueued, and its way to a [`NewEvent`].

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Type};
use uuid::Uuid;

use super::problem::{Answer, Code, Problem};
use super::query::parse_uuid;
use super::whole;
use crate::event::{DEFAULT_MAX_ATTEMPTS, Due, FieldProblem, NewEvent};
use crate::timestamp::Timestamp;

/// An event to enqueue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = NewEvent, examples(json!({
    "type": "invoice.created", "subject": "invoice/42", "payload": {"invoice": 42}
})))]
pub(super) struct NewEventBody {
    /// What happened; decides the route.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 200, pattern = "^[A-Za-z0-9._:/-]+$")]
    event_type: String,
    /// Any JSON, nested at most 128 levels deep; kept and delivered byte for byte.
    #[schema(value_type = serde_json::Value)]
    payload: Box<RawValue>,
    /// The caller's own id, any UUID but nil; the same id with the same content is a replay.
    #[serde(default, deserialize_with = "hyphenated")]
    id: Option<Uuid>,
    /// What the event is about.
    #[schema(max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    subject: Option<String>,
    /// When it becomes due; not together with `delay_ms`.
    #[schema(value_type = Option<String>, format = DateTime)]
    available_at: Option<Timestamp>,
    /// In how many milliseconds it becomes due; not together with `available_at`.
    #[schema(maximum = 316_224_000_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    delay_ms: Option<u64>,
    /// Failed attempts after which it becomes a dead letter; 10 when it is not given.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "whole::optional")]
    max_attempts: Option<i32>,
    /// Sent along to the receiver; names that outboxd sets or that steer HTTP are refused.
    #[schema(schema_with = headers_schema)]
    #[serde(default, deserialize_with = "distinct_headers")]
    headers: Option<BTreeMap<String, String>>,
}

/// An event of a batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = NewBatchEvent)]
pub(super) struct NewBatchEventBody {
    /// What happened; decides the route.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 200, pattern = "^[A-Za-z0-9._:/-]+$")]
    event_type: String,
    /// Any JSON, nested at most 128 levels deep; kept and delivered byte for byte.
    #[schema(value_type = serde_json::Value)]
    payload: Box<RawValue>,
    /// The caller's own id, any UUID but nil; the same id with the same content is a replay.
    #[serde(default, deserialize_with = "hyphenated")]
    id: Option<Uuid>,
    /// What the event is about.
    #[schema(max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    subject: Option<String>,
    /// When it becomes due; not together with `delay_ms`.
    #[schema(value_type = Option<String>, format = DateTime)]
    available_at: Option<Timestamp>,
    /// In how many milliseconds it becomes due; not together with `available_at`.
    #[schema(maximum = 316_224_000_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    delay_ms: Option<u64>,
    /// Failed attempts after which it becomes a dead letter; 10 when it is not given.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "whole::optional")]
    max_attempts: Option<i32>,
    /// Sent along to the receiver; names that outboxd sets or that steer HTTP are refused.
    #[schema(schema_with = headers_schema)]
    #[serde(default, deserialize_with = "distinct_headers")]
    headers: Option<BTreeMap<String, String>>,
    /// The caller's key: the same key with the same content is a replay.
    #[schema(min_length = 1, max_length = 255, pattern = "^[ -~]+$")]
    idempotency_key: Option<String>,
}

impl NewBatchEventBody {
    /// The event, and its key.
    pub fn split(self) -> (NewEventBody, Option<String>) {
        let Self { event_type, payload, id, subject, available_at, delay_ms, max_attempts, headers, idempotency_key } =
            self;
        let body = NewEventBody { event_type, payload, id, subject, available_at, delay_ms, max_attempts, headers };
        (body, idempotency_key)
    }
}

impl NewEventBody {
    /// The event that is asked for. `at` is the JSON pointer to this body.
    pub fn into_new_event(self, key: Option<String>, max_payload_bytes: usize, at: &str) -> Answer<NewEvent> {
        if self.payload.get().len() > max_payload_bytes {
            let detail = format!("the payload at {at}/payload exceeds {max_payload_bytes} bytes");
            return Err(Problem::new(Code::PayloadTooLarge, detail));
        }
        let mut problems = Vec::new();
        let due = match (self.available_at, self.delay_ms) {
            (None, None) => Due::Now,
            (None, Some(delay_ms)) => Due::AfterMs(delay_ms),
            (Some(at), None) => Due::At(at),
            (Some(_), Some(_)) => {
                let detail = "must not be given together with available_at".to_owned();
                problems.push(FieldProblem { pointer: "/delay_ms".to_owned(), detail });
                Due::Now
            }
        };
        let event = NewEvent {
            id: self.id,
            event_type: self.event_type,
            subject: self.subject,
            payload: Box::<str>::from(self.payload).into_string(),
            headers: self.headers.unwrap_or_default(),
            due,
            max_attempts: self.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS),
            idempotency_key: key,
            trace: None,
        };
        problems.extend(event.problems());
        if problems.is_empty() {
            return Ok(event);
        }
        let placed =
            problems.into_iter().map(|problem| FieldProblem { pointer: format!("{at}{}", problem.pointer), ..problem });
        Err(Problem::fields(placed.collect()))
    }
}

/// The one usual form of a UUID; the other ones that parsers know would come back changed.
fn hyphenated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    parse_uuid(&text).map(Some).ok_or_else(|| D::Error::custom("must be a UUID in its form with hyphens"))
}

/// Headers, or null for none. Of two with one name it would be unclear which one was meant.
fn distinct_headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    struct Distinct;

    impl<'de> Visitor<'de> for Distinct {
        type Value = Option<BTreeMap<String, String>>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object of strings")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut headers = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, String>()? {
                if headers.insert(name, value).is_some() {
                    return Err(A::Error::custom("has the same name twice"));
                }
            }
            Ok(Some(headers))
        }
    }

    deserializer.deserialize_any(Distinct)
}

fn headers_schema() -> Object {
    let name = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$"));
    let value = ObjectBuilder::new().schema_type(Type::String).max_length(Some(1024)).pattern(Some("^[\\t -~]*$"));
    ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some("Sent along to the receiver; names that outboxd sets or that steer HTTP are refused."))
        .property_names(Some(name.build()))
        .additional_properties(Some(AdditionalProperties::RefOr(value.build().into())))
        .max_properties(Some(16))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Answer<NewEvent> {
        let body: NewEventBody = serde_json::from_str(text).unwrap();
        body.into_new_event(None, 20, "/events/3")
    }

    fn pointers(text: &str) -> Vec<String> {
        let body = serde_json::to_value(read(text).unwrap_err().body("r")).unwrap();
        let errors = body["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| error["pointer"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_whole_event_arrives_unchanged() {
        let event =
            read(r#"{"type":"a.b","payload":{ "a":1.0 },"subject":"s","delay_ms":5,"max_attempts":3}"#).unwrap();
        assert_eq!((event.payload.as_str(), event.due, event.max_attempts), (r#"{ "a":1.0 }"#, Due::AfterMs(5), 3));
    }

    #[test]
    fn every_refused_field_is_named_from_the_root_of_the_body() {
        let text = r#"{"type":"","payload":1,"id":"00000000-0000-0000-0000-000000000000","max_attempts":0,
            "delay_ms":1,"available_at":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(pointers(text), ["/events/3/delay_ms", "/events/3/id", "/events/3/type", "/events/3/max_attempts"]);
    }

    #[test]
    fn one_byte_too_many_is_413() {
        assert!(read(&format!(r#"{{"type":"a","payload":"{}"}}"#, "x".repeat(18))).is_ok());
        let problem = read(&format!(r#"{{"type":"a","payload":"{}"}}"#, "x".repeat(19))).unwrap_err();
        assert_eq!(problem.code, Code::PayloadTooLarge);
    }
}
