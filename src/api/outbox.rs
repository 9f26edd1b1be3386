//! Which outbox a request means: the query parameter `outbox`, which every path takes.

use std::ops::Deref;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::ApiState;
use super::problem::{Code, Problem};
use super::query::outbox_of;
use crate::event::EventId;
use crate::processor::{Outboxes, Processor, UnknownOutbox};
use crate::store::Store;

/// What a segment of a path holds as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Extracts the outbox of a path that is about one: the named one, or the default one.
pub(super) struct Outbox {
    processor: Processor,
    is_default: bool,
}

/// Extracts the outbox that answers for what is common to all: the named one, or the first.
pub(super) struct AnyOutbox(pub Outbox);

impl Outbox {
    fn new(outboxes: &Outboxes, processor: &Processor) -> Self {
        let is_default = outboxes.default_outbox().is_some_and(|default| default.outbox() == processor.outbox());
        Self { processor: processor.clone(), is_default }
    }

    /// Its store.
    pub fn store(&self) -> &dyn Store {
        self.processor.store().as_ref()
    }

    /// The name of a list, as its cursors know it: a place in one outbox means nothing in another.
    pub fn list_name(&self, name: &str) -> String {
        if self.is_default { name.to_owned() } else { format!("{name}@{}", self.outbox()) }
    }

    /// The path and query that lead to one of its events.
    pub fn location(&self, id: &EventId) -> String {
        let id = id.to_string();
        let path = format!("/v1/events/{}", utf8_percent_encode(&id, ENCODED));
        if self.is_default { path } else { format!("{path}?outbox={}", self.outbox()) }
    }
}

impl Deref for Outbox {
    type Target = Processor;

    fn deref(&self) -> &Processor {
        &self.processor
    }
}

impl FromRequestParts<ApiState> for Outbox {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let name = outbox_of(parts.uri.query().unwrap_or_default())?;
        let outboxes = state.outboxes();
        Ok(Self::new(outboxes, outboxes.choose(name.as_deref())?))
    }
}

impl FromRequestParts<ApiState> for AnyOutbox {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let name = outbox_of(parts.uri.query().unwrap_or_default())?;
        let outboxes = state.outboxes();
        let chosen = match &name {
            Some(name) => outboxes.choose(Some(name))?,
            None => outboxes.home(),
        };
        Ok(Self(Outbox::new(outboxes, chosen)))
    }
}

impl From<UnknownOutbox> for Problem {
    fn from(error: UnknownOutbox) -> Self {
        Self::new(Code::OutboxNotFound, error.to_string())
    }
}
