//! The list of events, in an order that never changes: newest first, or oldest first.

use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::{Caller, Scope};
use super::cursor::{List, not_a_cursor};
use super::event_view::EventView;
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::problem::Answer;
use super::query::{FromQuery, Query, QueryReader, refused};
use crate::event::{Event, MAX_SUBJECT_CHARS, Status};
use crate::store::{EventPosition, EventQuery};
use crate::timestamp::Timestamp;

problem_set!(ListProblems: Plain);

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventList)]
pub(super) struct EventListView {
    /// At most `limit` events; may be few or none before the end of the list.
    data: Vec<EventView>,
    /// Where the list goes on; null only at its end.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

impl EventListView {
    /// The page as this caller may see it.
    pub(super) fn new(events: Vec<Event>, next_cursor: Option<String>, outbox: &Outbox, caller: &Caller) -> Self {
        let view = |event| EventView::new(event, outbox.outbox(), caller);
        Self { data: events.into_iter().map(view).collect(), next_cursor }
    }
}

/// Which events.
pub(super) struct ListQuery {
    query: EventQuery,
    cursor: Option<String>,
}

impl FromQuery for ListQuery {
    fn from_query(query: &mut QueryReader) -> Answer<Self> {
        let mut types = query.types("type")?;
        types.sort_unstable();
        types.dedup();
        let rising = match query.one("order")?.as_deref() {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(refused("order", "must be `desc` or `asc`")),
        };
        let asked = EventQuery {
            statuses: statuses(query)?,
            types,
            subject: query.text("subject", MAX_SUBJECT_CHARS)?,
            created_after: instant(query, "created_after")?,
            created_before: instant(query, "created_before")?,
            rising,
            after: None,
            limit: query.limit()?,
            with_payload: false,
        };
        Ok(Self { query: asked, cursor: query.one("cursor")? })
    }
}

fn statuses(query: &mut QueryReader) -> Answer<Vec<Status>> {
    let parse = |word: String| {
        word.parse::<Status>()
            .map_err(|_| refused("status", "must be pending, processing, completed, dead_letter or skipped"))
    };
    let mut statuses = query.all("status").into_iter().map(parse).collect::<Answer<Vec<_>>>()?;
    statuses.sort_unstable();
    statuses.dedup();
    Ok(statuses)
}

fn instant(query: &mut QueryReader, name: &str) -> Answer<Option<Timestamp>> {
    let Some(text) = query.one(name)? else { return Ok(None) };
    let detail = "must be an instant such as 2026-01-31T12:00:00Z, its `+` written as %2B";
    text.parse().map(Some).map_err(|_| refused(name, detail))
}

impl ListQuery {
    /// The list that this is in an outbox.
    fn list(&self, outbox: &Outbox) -> List {
        let query = &self.query;
        let statuses: Vec<&str> = query.statuses.iter().map(|status| status.as_str()).collect();
        let filters = [
            Some(statuses.join(" ")),
            Some(query.types.join(" ")),
            query.subject.clone(),
            query.created_after.map(|at| at.to_string()),
            query.created_before.map(|at| at.to_string()),
            Some(if query.rising { "asc" } else { "desc" }.to_owned()),
        ];
        List::new(&outbox.list_name("events"), &filters.each_ref().map(Option::as_deref))
    }

    /// Where the page begins.
    fn after(&self, list: List, outbox: &Outbox) -> Answer<Option<EventPosition>> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let (created_at, id) = list.place(cursor)?;
        let id = outbox.store().parse_id(&id.to_string()).ok_or_else(not_a_cursor)?;
        Ok(Some(EventPosition { created_at, id }))
    }
}

/// List events.
///
/// The order is that of the ids, which are made in the order of creation; in an adopted table on Postgres that of
/// `created_at` where an index leads along it, else of its own ids. What is written or settled between two pages neither repeats nor hides another.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", operation_id = "listEvents",
    params(
        ("status" = Option<Vec<String>>, Query, description = "Only these statuses; may be repeated."),
        ("type" = Option<Vec<String>>, Query, description = "Only these types; may be repeated."),
        ("subject" = Option<String>, Query, max_length = 255, description = "Only this subject."),
        ("created_after" = Option<String>, Query, description = "Only those enqueued later than this."),
        ("created_before" = Option<String>, Query, description = "Only those enqueued earlier than this."),
        ("order" = Option<String>, Query, description = "`desc`, newest first, or `asc`."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Events at most; 50 when it is not given, lowered to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before, with the same filters."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    responses((status = 200, description = "A page of events.", body = EventListView), ListProblems)
)]
pub(super) async fn list(
    Extension(caller): Extension<Caller>,
    Query(query): Query<ListQuery>,
    outbox: Outbox,
) -> Answer<Json<EventListView>> {
    let list = query.list(&outbox);
    let after = query.after(list, &outbox)?;
    let query = EventQuery { after, with_payload: caller.may(Scope::Payload), ..query.query };
    let page = outbox.store().events(&query).await?;
    let next_cursor = page.next.map(|next| list.cursor(next.created_at, &next.id));
    Ok(Json(EventListView::new(page.events, next_cursor, &outbox, &caller)))
}
