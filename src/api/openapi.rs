//! The interface described by itself: `openapi.yaml`, made from the handlers' annotations.
//!
//! The committed file is a copy; a test compares both. Which problems a path can answer with is declared beside its
//! handler by [`problem_set`], from the same [`Code`]s that the handler returns.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, HeaderBuilder, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::code::Code;
use super::problem::{Problem, ProblemBody, RefusedField};
use super::query::MAX_TYPES;
use super::{
    dead_letter_bulk, dead_letters, event_batch, event_cancel, event_list, event_process, event_settle, events, health,
    in_flight, metrics, page, process, runs, stats,
};
use crate::event::Status;
use crate::run::{RunRecord, RunReport};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "outboxd",
        description = "A transactional outbox as a service. Delivery is at-least-once and fenced. Instants are RFC 3339 \
                       in UTC; durations are milliseconds. Unknown fields and query parameters are refused; clients \
                       ignore fields that they do not know. Every answer carries `x-request-id`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
        contact(name = "outboxd"),
    ),
    servers((url = "/", description = "this instance")),
    tags(
        (name = "events", description = "Enqueue, read, process and cancel single events."),
        (name = "process", description = "Process what is due: what a scheduler calls."),
        (name = "runs", description = "What runs have done."),
        (name = "dead letters", description = "Events that were given up."),
        (name = "page", description = "The dashboard."),
        (name = "stats", description = "What stands in the lanes, and metrics."),
        (name = "health", description = "Probes and this description."),
    ),
    paths(
        page::dashboard, events::enqueue, event_list::list, event_batch::enqueue, in_flight::read, events::read, event_process::process,
        event_cancel::cancel, event_settle::settle, event_settle::extend, process::by_get, process::by_post, runs::list,
        runs::read, dead_letters::list, dead_letters::requeue, dead_letters::discard, dead_letter_bulk::requeue,
        dead_letter_bulk::discard, stats::read, metrics::read, health::livez, health::readyz,
        read,
    ),
    components(schemas(ProblemBody, RefusedField, RunReport, RunRecord)),
    modifiers(&Bearer, &Parameters, &OptionalBodies),
    security(("bearer" = [])),
)]
struct Description;

/// The one way to authenticate.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A token with the scope that the path demands. Without configured tokens none is needed.",
            ))
            .build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// What the parameters that several paths share may look like, said once.
struct Parameters;

impl Modify for Parameters {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        for parameter in operations(openapi).filter_map(|operation| operation.parameters.as_mut()).flatten() {
            let RefOr::T(parameter) = parameter else { continue };
            if let Some(schema) = parameter_schema(&parameter.name) {
                parameter.schema = Some(schema.into());
            }
        }
    }
}

fn parameter_schema(name: &str) -> Option<Schema> {
    let text = |pattern: &str| ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
    let event_type = text("^[A-Za-z0-9._:/-]+$").min_length(Some(1)).max_length(Some(200));
    Some(match name {
        "outbox" => text("^[a-z][a-z0-9_-]*$").max_length(Some(63)).into(),
        "type" | "types" => ArrayBuilder::new().items(event_type).max_items(Some(MAX_TYPES)).into(),
        "subject" | "key" | "value" => text(NO_CONTROLS).max_length(Some(255)).into(),
        "status" => {
            let words = Status::ALL.map(Status::as_str);
            let status = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
            ArrayBuilder::new().items(status).into()
        }
        "created_after" | "created_before" => ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into(),
        "order" => ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["desc", "asc"])).into(),
        "error_contains" => text(NO_CONTROLS).max_length(Some(500)).into(),
        "limit" => ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).into(),
        "cursor" => text("^[A-Za-z0-9_-]+$").min_length(Some(23)).max_length(Some(1382)).into(),
        "idempotency-key" => text(r#"^([!#-~]([ -~]{0,253}[!-~])?|"([ !#-\[\]-~]|\\["\\]){1,255}")$"#).into(),
        _ => return None,
    })
}

const NO_CONTROLS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// A body that may be left out: leaving it out is not the same as sending `null`, which is refused.
struct OptionalBodies;

impl Modify for OptionalBodies {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        for body in operations(openapi).filter_map(|operation| operation.request_body.as_mut()) {
            let RefOr::T(body) = body else { continue };
            for content in body.content.values_mut() {
                let RefOr::T(content) = content else { continue };
                if let Some(RefOr::T(Schema::OneOf(choice))) = &content.schema {
                    content.schema = choice.items.iter().find(|item| matches!(item, RefOr::Ref(_))).cloned();
                    body.required = Some(Required::False);
                }
            }
        }
    }
}

fn operations(openapi: &mut utoipa::openapi::OpenApi) -> impl Iterator<Item = &mut Operation> {
    openapi.paths.paths.values_mut().flat_map(|item| [item.get.as_mut(), item.post.as_mut()]).flatten()
}

static YAML: LazyLock<String> = LazyLock::new(|| Description::openapi().to_yaml().unwrap_or_default());

/// The description of the interface, `OpenAPI` 3.1 as YAML; the same text on every call.
#[must_use]
pub fn openapi_yaml() -> String {
    YAML.clone()
}

/// This description.
#[utoipa::path(
    get, path = "/openapi.yaml", tag = "health", operation_id = "openapi", security(()),
    responses((status = 200, description = "OpenAPI 3.1.", body = String, content_type = "application/yaml"))
)]
pub(super) async fn read() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"))], YAML.as_str()).into_response()
}

/// The problems that come with the kind of a path.
pub(super) enum Kind {
    /// None of their own.
    Bare,
    /// Those of a path behind a token.
    Plain,
    /// Those of a path behind a token that takes a body.
    WithBody,
}

impl Kind {
    fn codes(self) -> Vec<Code> {
        let mut codes = Vec::new();
        if matches!(self, Self::Plain | Self::WithBody) {
            codes.extend([Code::InvalidRequest, Code::Unauthorized, Code::Forbidden, Code::OutboxNotFound]);
            codes.extend([Code::Internal, Code::DatabaseUnavailable]);
        }
        if matches!(self, Self::WithBody) {
            codes.extend([Code::PayloadTooLarge, Code::UnsupportedMediaType]);
        }
        codes
    }
}

/// The answers that these problems are, one a status.
pub(super) fn responses(kind: Kind, own: &[Code]) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in kind.codes().into_iter().chain(own.iter().copied()) {
        by_status.entry(code.status().as_u16()).or_default().push(code);
    }
    by_status.into_iter().map(|(status, codes)| (status.to_string(), response(&codes).into())).collect()
}

fn response(codes: &[Code]) -> utoipa::openapi::Response {
    let lines: Vec<String> = codes.iter().map(|code| format!("`{}`: {}.", code.as_str(), code.title())).collect();
    let schema = Ref::from_schema_name("Problem");
    let example =
        codes.first().map(|code| Problem::new(*code, code.title()).body("01990000-0000-7000-8000-000000000001"));
    let example = example.and_then(|body| serde_json::to_value(body).ok());
    let content = ContentBuilder::new().schema(Some(schema)).example(example).build();
    let mut response =
        ResponseBuilder::new().description(lines.join(" ")).content("application/problem+json", content).build();
    let header = match codes.first().map(|code| code.status()) {
        Some(StatusCode::UNAUTHORIZED) => Some(("www-authenticate", "`Bearer`")),
        Some(StatusCode::SERVICE_UNAVAILABLE) => Some(("retry-after", "Seconds after which to try again.")),
        _ => None,
    };
    if let Some((name, description)) = header {
        let header = HeaderBuilder::new().description(Some(description)).build();
        response.headers.insert(name.to_owned(), header.into());
    }
    response
}

/// Declares the problems that a path can answer with: those of its kind, and its own.
macro_rules! problem_set {
    ($name:ident: $kind:ident $(, $code:ident)*) => {
        /// The problems that these paths can answer with.
        struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::Response>,
            > {
                use super::openapi::{Kind, responses};
                responses(Kind::$kind, &[$(super::code::Code::$code),*])
            }
        }
    };
}
pub(super) use problem_set;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_description_is_the_generated_one() {
        let committed =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.yaml")).unwrap_or_default();
        assert!(committed == openapi_yaml(), "openapi.yaml is out of date: run `cargo run -- openapi > openapi.yaml`");
    }

    #[test]
    fn every_operation_names_its_problems_and_has_its_own_id() {
        let json = serde_json::to_value(Description::openapi()).unwrap();
        let mut ids = std::collections::BTreeSet::new();
        for (path, item) in json["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}");
                let behind_token = path.starts_with("/v1") || path == "/metrics";
                assert_eq!(operation["responses"].get("401").is_some(), behind_token, "{method} {path}");
            }
        }
        assert_eq!(ids.len(), 24);
    }
}
