//! Every kind of problem that the interface knows, with its status: the table of the contract.

use axum::http::StatusCode;

/// What kind of problem; the word is stable and means the same everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// Malformed JSON, an unknown field, a wrong type, a value out of range, a bad cursor.
    InvalidRequest,
    /// No routed type fits the budget.
    InvalidBudget,
    /// A bulk operation that would mean every dead letter.
    EmptyFilter,
    /// No token, or one that nobody has.
    Unauthorized,
    /// The token lacks the scope.
    Forbidden,
    /// No such event.
    EventNotFound,
    /// No such outbox.
    OutboxNotFound,
    /// No such run.
    RunNotFound,
    /// No such path.
    NotFound,
    /// The path does not know the method.
    MethodNotAllowed,
    /// The id exists with other content.
    EventIdConflict,
    /// The claim that a token stands for is over.
    LeaseLost,
    /// The event is no dead letter.
    NotDeadLettered,
    /// The event is not pending.
    NotCancellable,
    /// The body, or one payload, is too large.
    PayloadTooLarge,
    /// The body is not JSON.
    UnsupportedMediaType,
    /// The key was used for other content.
    IdempotencyKeyReused,
    /// A defect.
    Internal,
    /// The database is down, read-only or has another schema.
    DatabaseUnavailable,
    /// The instance is stopping.
    ShuttingDown,
}

impl Code {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid-request",
            Self::InvalidBudget => "invalid-budget",
            Self::EmptyFilter => "empty-filter",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::EventNotFound => "event-not-found",
            Self::OutboxNotFound => "outbox-not-found",
            Self::RunNotFound => "run-not-found",
            Self::NotFound => "not-found",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::EventIdConflict => "event-id-conflict",
            Self::LeaseLost => "lease-lost",
            Self::NotDeadLettered => "not-dead-lettered",
            Self::NotCancellable => "not-cancellable",
            Self::PayloadTooLarge => "payload-too-large",
            Self::UnsupportedMediaType => "unsupported-media-type",
            Self::IdempotencyKeyReused => "idempotency-key-reused",
            Self::Internal => "internal",
            Self::DatabaseUnavailable => "database-unavailable",
            Self::ShuttingDown => "shutting-down",
        }
    }

    /// The code in words; the same for every occurrence.
    pub fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is not valid",
            Self::InvalidBudget => "No routed type fits the budget",
            Self::EmptyFilter => "Neither ids nor a filter",
            Self::Unauthorized => "A valid token is required",
            Self::Forbidden => "The token lacks the scope",
            Self::EventNotFound => "No such event",
            Self::OutboxNotFound => "No such outbox",
            Self::RunNotFound => "No such run",
            Self::NotFound => "No such path",
            Self::MethodNotAllowed => "Method not allowed",
            Self::EventIdConflict => "The event id is taken",
            Self::LeaseLost => "The claim is over",
            Self::NotDeadLettered => "The event is no dead letter",
            Self::NotCancellable => "The event cannot be cancelled",
            Self::PayloadTooLarge => "Too large",
            Self::UnsupportedMediaType => "The body must be JSON",
            Self::IdempotencyKeyReused => "The idempotency key is taken",
            Self::Internal => "Internal error",
            Self::DatabaseUnavailable => "The database is unavailable",
            Self::ShuttingDown => "Shutting down",
        }
    }

    /// The HTTP status.
    pub fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::InvalidBudget | Self::EmptyFilter => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::EventNotFound | Self::OutboxNotFound | Self::RunNotFound | Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::EventIdConflict | Self::LeaseLost | Self::NotDeadLettered | Self::NotCancellable => {
                StatusCode::CONFLICT
            }
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::DatabaseUnavailable | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
