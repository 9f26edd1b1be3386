//! Refusals and failures as `application/problem+json` (RFC 9457).
//!
//! The parts below know nothing of HTTP; here each of their errors becomes one [`Code`] with its status, a sentence for
//! the caller and, where it helps, the fields that are wrong. A problem never holds SQL, a stack or a secret: what only
//! an operator may see goes into `cause`, which is logged once and not sent. The body is written at the very end, by
//! [`context`](super::context), because only there the request's id is known.

use std::borrow::Cow;
use std::error::Error;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

pub use super::code::Code;
use crate::event::{FieldProblem, Status};
use crate::processor::{ProcessEventError, RunError, TokenError};
use crate::run::RunReport;
use crate::store::{EnqueueError, StoreError};

/// Seconds after which a caller may try again when the database is away or the instance is stopping.
const RETRY_AFTER_SECONDS: &str = "2";

/// An answer that is not a success.
#[derive(Debug, Clone)]
pub struct Problem {
    /// What kind of problem.
    pub code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldProblem>,
    event_status: Option<Status>,
    partial: Option<Box<RunReport>>,
    allow: Option<&'static str>,
    cause: Option<String>,
}

/// What every handler returns.
pub type Answer<T = Response> = Result<T, Problem>;

impl Problem {
    /// A problem of this kind, and a sentence that says what would be valid.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            event_status: None,
            partial: None,
            allow: None,
            cause: None,
        }
    }

    /// A refused request without a field to blame.
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// One refused field or query parameter.
    pub fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::fields(vec![FieldProblem { pointer: pointer.into(), detail: detail.into() }])
    }

    /// All the fields that are refused, at least one.
    pub fn fields(errors: Vec<FieldProblem>) -> Self {
        let detail = match errors.as_slice() {
            [only] if only.pointer.is_empty() => format!("the body is not valid: {}", only.detail),
            [only] => format!("{} {}", only.pointer, only.detail),
            several => format!("{} fields are not valid", several.len()),
        };
        Self { errors, ..Self::invalid(detail) }
    }

    /// The event that was asked for does not exist.
    pub fn event_not_found() -> Self {
        Self::new(Code::EventNotFound, "there is no event with this id")
    }

    /// A claim token whose claim is over.
    pub fn lease_lost() -> Self {
        Self::new(Code::LeaseLost, "the claim is over: its lease was lost or it has been settled")
    }

    /// The method does not exist on this path; `allow` names those that do when the router cannot know it.
    pub fn method_not_allowed(allow: Option<&'static str>) -> Self {
        let detail = "this path does not know the method; the header Allow names those that it knows";
        Self { allow, ..Self::new(Code::MethodNotAllowed, detail) }
    }

    /// A defect; `cause` is for the log alone.
    pub fn internal(cause: impl Into<String>) -> Self {
        let detail = "an internal error has been logged under this request id";
        Self { cause: Some(cause.into()), ..Self::new(Code::Internal, detail) }
    }

    /// A guarded change that found the event in another state.
    pub fn wrong_state(code: Code, status: Status, detail: &'static str) -> Self {
        Self { event_status: Some(status), ..Self::new(code, detail) }
    }

    /// What the log should say of it, if anything.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The headers that belong to the problem, beside its body.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.code.status() == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        if self.code == Code::ShuttingDown {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
    }

    /// The JSON that is sent.
    pub fn body(&self, request_id: &str) -> ProblemBody {
        ProblemBody {
            kind: format!("urn:outboxd:problem:{}", self.code.as_str()),
            title: self.code.title().to_owned(),
            status: self.code.status().as_u16(),
            detail: self.detail.clone().into_owned(),
            code: self.code.as_str().to_owned(),
            request_id: request_id.to_owned(),
            errors: self.errors.iter().map(RefusedField::from).collect(),
            event_status: self.event_status.map(Status::as_str),
            partial: self.partial.clone(),
        }
    }
}

impl IntoResponse for Problem {
    /// Leaves the problem in the response's extensions, for the outermost layer to write.
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        self.add_headers(response.headers_mut());
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let cause = Some(with_sources(&error));
        let detail = match &error {
            StoreError::Unavailable { .. } => "the database does not answer or cannot be written to; try again later",
            StoreError::Locked { .. } => "somebody else has locked the event's row; try again later",
            StoreError::SchemaOutdated => "the database schema is missing or out of date; run `outboxd migrate`",
            StoreError::SchemaTooNew { .. } => "the database schema is newer than this binary; install a newer outboxd",
            StoreError::SchemaBroken { .. } => "the database schema is broken; the log says how",
            StoreError::Unsupported { reason } => return Self::invalid(reason.clone()),
            StoreError::Data { .. } | StoreError::Internal { .. } => return Self::internal(with_sources(&error)),
        };
        Self { cause, ..Self::new(Code::DatabaseUnavailable, detail) }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::BudgetTooSmall { .. } => Self::new(Code::InvalidBudget, error.to_string()),
            RunError::UnknownOutbox(error) => Self::from(error),
            RunError::ShuttingDown => shutting_down(),
            RunError::Panicked { reason } => Self::internal(reason),
            RunError::Store { source, partial } => Self { partial, ..Self::from(source) },
        }
    }
}

impl From<ProcessEventError> for Problem {
    fn from(error: ProcessEventError) -> Self {
        match error {
            ProcessEventError::NotFound => Self::event_not_found(),
            ProcessEventError::ShuttingDown => shutting_down(),
            ProcessEventError::Panicked { reason } => Self::internal(reason),
            ProcessEventError::Store(source) => Self::from(source),
        }
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid => Self::new(Code::Unauthorized, error.to_string()),
            TokenError::LeaseLost => Self::lease_lost(),
            TokenError::Store(source) => Self::from(source),
        }
    }
}

/// The instance takes no new work.
pub fn shutting_down() -> Problem {
    Problem::new(Code::ShuttingDown, "this instance is shutting down; another one will take the request")
}

/// An enqueue that was refused; `pointer` leads from an event's index to its place in the body.
pub fn enqueue_problem(error: EnqueueError, pointer: impl Fn(usize, &str) -> String) -> Problem {
    let blame = |code, index, field: &str, detail: &'static str| Problem {
        errors: vec![FieldProblem { pointer: pointer(index, field), detail: detail.to_owned() }],
        ..Problem::new(code, detail)
    };
    match error {
        EnqueueError::IdConflict { index } => {
            blame(Code::EventIdConflict, index, "id", "an event with this id exists and has other content")
        }
        EnqueueError::KeyReused { index } => blame(
            Code::IdempotencyKeyReused,
            index,
            "idempotency_key",
            "this idempotency key was used before, for other content",
        ),
        EnqueueError::Store(StoreError::Data { reason, .. }) => {
            Problem::invalid(format!("the database cannot keep this: {reason}"))
        }
        EnqueueError::Store(error) => Problem::from(error),
    }
}

/// The error and what caused it, in one line.
fn with_sources(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// A refusal or a failure (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// `urn:outboxd:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The code in words.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong with this request, and what would be valid.
    detail: String,
    /// What kind of problem; the same word always means the same thing.
    code: String,
    /// Names this request in the log; also in the header `x-request-id`.
    request_id: String,
    /// The fields that are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<RefusedField>,
    /// The event's present state, when that is what stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    event_status: Option<&'static str>,
    /// What a run had done when the database was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = RunReport, required = false)]
    partial: Option<Box<RunReport>>,
}

/// A field that is refused.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefusedField {
    /// JSON pointer to the field of the body; for a query parameter or a header, `/` and its name.
    pointer: String,
    /// What is wrong and what would be valid.
    detail: String,
}

impl From<&FieldProblem> for RefusedField {
    fn from(problem: &FieldProblem) -> Self {
        Self { pointer: problem.pointer.clone(), detail: problem.detail.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_database_is_503_and_keeps_its_cause_to_the_log() {
        let problem = Problem::from(StoreError::Unavailable { reason: "pool timed out".to_owned(), source: None });
        let body = serde_json::to_value(problem.body("r-1")).unwrap();
        assert_eq!(body["code"], "database-unavailable");
        assert_eq!(body["type"], "urn:outboxd:problem:database-unavailable");
        assert!(!body.to_string().contains("pool timed out"));
        assert_eq!(problem.cause(), Some("the database is unavailable: pool timed out"));
        assert_eq!(problem.into_response().headers()["retry-after"], "2");
    }

    #[test]
    fn a_run_that_lost_its_database_says_what_it_had_done() {
        let report = RunReport { claimed: 3, ..RunReport::begun(uuid::Uuid::nil()) };
        let source = StoreError::Unavailable { reason: String::new(), source: None };
        let problem = Problem::from(RunError::Store { source, partial: Some(Box::new(report)) });
        assert_eq!(serde_json::to_value(problem.body("r")).unwrap()["partial"]["claimed"], 3);
    }

    #[test]
    fn a_conflict_points_at_the_event_of_the_batch() {
        let problem = enqueue_problem(EnqueueError::IdConflict { index: 7 }, |i, field| format!("/events/{i}/{field}"));
        let body = serde_json::to_value(problem.body("r")).unwrap();
        assert_eq!((body["status"].as_u64(), body["errors"][0]["pointer"].as_str()), (Some(409), Some("/events/7/id")));
    }
}
