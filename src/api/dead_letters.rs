//! Dead letters: list them, and give one another chance or up for good.

use std::time::Duration;

use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::ToSchema;

use super::auth::{Caller, Scope};
use super::body::OptionalJson;
use super::cursor::{List, not_a_cursor};
use super::event_list::EventListView;
use super::event_view::{EventView, view_changed};
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::path::PathId;
use super::problem::{Answer, Code, Problem};
use super::query::{FromQuery, NoParameters, Query, QueryReader, check_text};
use super::whole;
use crate::event::{EventId, MAX_ATTEMPTS_LIMIT, MAX_DELAY_MS, MAX_SUBJECT_CHARS, Status};
use crate::outcome::MAX_REASON_CHARS;
use crate::store::{DeadLetterPosition, DeadLetterQuery, RequeueChange, Transition};

problem_set!(ListProblems: Plain);
problem_set!(ChangeProblems: WithBody, EventNotFound, NotDeadLettered);

/// Characters of an error that may be searched for.
const MAX_SEARCH_CHARS: usize = 500;

/// Which dead letters.
pub(super) struct ListQuery {
    query: DeadLetterQuery,
    cursor: Option<String>,
}

impl FromQuery for ListQuery {
    fn from_query(query: &mut QueryReader) -> Answer<Self> {
        let mut types = query.types("type")?;
        types.sort_unstable();
        types.dedup();
        let subject = query.text("subject", MAX_SUBJECT_CHARS)?;
        let error_contains = query.text("error_contains", MAX_SEARCH_CHARS)?;
        let cursor = query.one("cursor")?;
        let limit = query.limit()?;
        let query = DeadLetterQuery { types, subject, error_contains, after: None, limit, with_payload: false };
        Ok(Self { query, cursor })
    }
}

impl ListQuery {
    /// The list that this is in an outbox.
    fn list(&self, outbox: &Outbox) -> List {
        let query = &self.query;
        let filters = [Some(query.types.join(" ")), query.subject.clone(), query.error_contains.clone()];
        List::new(&outbox.list_name("dead-letters"), &filters.each_ref().map(Option::as_deref))
    }

    /// Where the page begins.
    fn after(&self, list: List, outbox: &Outbox) -> Answer<Option<DeadLetterPosition>> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let (dead_at, id) = list.place(cursor)?;
        let id = outbox.store().parse_id(&id.to_string()).ok_or_else(not_a_cursor)?;
        Ok(Some(DeadLetterPosition { dead_at, id }))
    }
}

/// List dead letters, newest first.
#[utoipa::path(
    get, path = "/v1/dead-letters", tag = "dead letters", operation_id = "listDeadLetters",
    params(
        ("type" = Option<Vec<String>>, Query, description = "Only these types; may be repeated."),
        ("subject" = Option<String>, Query, max_length = 255, description = "Only this subject."),
        ("error_contains" = Option<String>, Query, max_length = 500, description = "Only those whose error contains this text, in this case."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Events at most; 50 when it is not given, lowered to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before, with the same filters."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    responses(
        (status = 200, description = "A page of dead letters.", body = EventListView, links(
            ("requeue" = (operation_id = "requeueDeadLetter", parameters(("id" = "$response.body#/data/0/id")))),
            ("discard" = (operation_id = "discardDeadLetter", parameters(("id" = "$response.body#/data/0/id")))),
        )),
        ListProblems,
    )
)]
pub(super) async fn list(
    Extension(caller): Extension<Caller>,
    Query(query): Query<ListQuery>,
    outbox: Outbox,
) -> Answer<Json<EventListView>> {
    let list = query.list(&outbox);
    let after = query.after(list, &outbox)?;
    let query = DeadLetterQuery { after, with_payload: caller.may(Scope::Payload), ..query.query };
    let page = outbox.store().dead_letters(&query).await?;
    let next_cursor = page.next.map(|next| list.cursor(next.dead_at, &next.id));
    Ok(Json(EventListView::new(page.events, next_cursor, &outbox, &caller)))
}

/// How to requeue.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Requeue)]
pub(super) struct RequeueBody {
    /// In how many milliseconds it becomes due; at once when it is not given.
    #[schema(maximum = 316_224_000_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    delay_ms: Option<u64>,
    /// A new attempts limit; unchanged when it is not given.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "whole::optional")]
    max_attempts: Option<i32>,
    /// Why, for the event's log.
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    note: Option<String>,
}

/// Give a dead letter another chance: pending, with no attempts spent.
#[utoipa::path(
    post, path = "/v1/dead-letters/{id}/requeue", tag = "dead letters", operation_id = "requeueDeadLetter",
    params(
        ("id" = String, Path, description = "The event's id."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    request_body(content = Option<RequeueBody>),
    responses((status = 200, description = "The event, pending.", body = EventView), ChangeProblems)
)]
pub(super) async fn requeue(
    Extension(caller): Extension<Caller>,
    PathId(id): PathId,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    OptionalJson(body): OptionalJson<RequeueBody>,
) -> Answer<Json<EventView>> {
    check_text(body.note.as_deref(), "/note", MAX_REASON_CHARS)?;
    let delay_ms = body.delay_ms.unwrap_or(0);
    if delay_ms > MAX_DELAY_MS {
        return Err(Problem::field("/delay_ms", format!("must be a whole number from 0 to {MAX_DELAY_MS}")));
    }
    if body.max_attempts.is_some_and(|limit| !(1..=MAX_ATTEMPTS_LIMIT).contains(&limit)) {
        return Err(Problem::field("/max_attempts", "must be 1 to 100"));
    }
    let change = RequeueChange { delay: Duration::from_millis(delay_ms), max_attempts: body.max_attempts };
    if change.max_attempts.is_some() && !outbox.store().abilities().await?.set_max_attempts {
        return Err(Problem::field("/max_attempts", "cannot be set: this outbox's table has no column for it"));
    }
    let transition = outbox.store().requeue(&id, &change, &caller.actor(body.note.as_deref())).await?;
    changed(&outbox, &caller, &id, transition, "requeued", body.note.as_deref()).await
}

/// How to discard.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Discard)]
pub(super) struct DiscardBody {
    /// Why; becomes the event's `last_error`, and stands in its log.
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    note: Option<String>,
}

/// Give a dead letter up for good: skipped.
#[utoipa::path(
    post, path = "/v1/dead-letters/{id}/discard", tag = "dead letters", operation_id = "discardDeadLetter",
    params(
        ("id" = String, Path, description = "The event's id."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    request_body(content = Option<DiscardBody>),
    responses((status = 200, description = "The event, skipped.", body = EventView), ChangeProblems)
)]
pub(super) async fn discard(
    Extension(caller): Extension<Caller>,
    PathId(id): PathId,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    OptionalJson(body): OptionalJson<DiscardBody>,
) -> Answer<Json<EventView>> {
    check_text(body.note.as_deref(), "/note", MAX_REASON_CHARS)?;
    let note = body.note.as_deref();
    let transition = outbox.store().discard(&id, note.unwrap_or("discarded"), &caller.actor(note)).await?;
    changed(&outbox, &caller, &id, transition, "discarded", note).await
}

async fn changed(
    outbox: &Outbox,
    caller: &Caller,
    id: &EventId,
    transition: Transition,
    change: &'static str,
    note: Option<&str>,
) -> Answer<Json<EventView>> {
    match transition {
        Transition::Applied(event) => {
            tracing::info!(event_id = %id, token = caller.name(), change, note, "dead letter changed");
            Ok(Json(view_changed(outbox, *event, caller).await))
        }
        Transition::Refused(event) => {
            let detail = if event.status == Status::DeadLetter {
                "this outbox's table has no status for a dead letter that was given up"
            } else {
                "the event is no dead letter"
            };
            Err(Problem::wrong_state(Code::NotDeadLettered, event.status, detail))
        }
        Transition::Absent => Err(Problem::event_not_found()),
    }
}
