//! Many dead letters at once: requeue or discard those that are named, or all that match.
//!
//! The work is done in short steps between which nothing is held. A caller that hangs up ends it between two of them; the
//! same request made again goes on, for what has been changed is no dead letter any more.

use std::time::Duration;

use axum::{Extension, Json as Answered};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::Caller;
use super::body::Json;
use super::cursor::{List, not_a_cursor};
use super::openapi::problem_set;
use super::outbox::Outbox;
use super::problem::{Answer, Code, Problem};
use super::query::{NoParameters, Query, check_text, check_types};
use super::whole;
use crate::event::{EventId, MAX_DELAY_MS, MAX_SUBJECT_CHARS};
use crate::outcome::{MAX_ERROR_CHARS, MAX_REASON_CHARS};
use crate::store::{
    BulkChange, BulkReport, BulkRequest, DeadLetterFilter, DeadLetterPosition, MAX_BULK, Selection, change_many,
};
use crate::timestamp::Timestamp;

problem_set!(BulkProblems: WithBody, EmptyFilter);

/// What dead letters have in common; every key that is given must fit.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = DeadLetterFilter)]
pub(super) struct FilterBody {
    /// Any of these types.
    #[schema(max_items = 100)]
    #[serde(default)]
    types: Vec<String>,
    /// This subject.
    #[schema(max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    subject: Option<String>,
    /// Became a dead letter later than this.
    #[schema(value_type = Option<String>, format = DateTime)]
    dead_after: Option<Timestamp>,
    /// Became a dead letter earlier than this.
    #[schema(value_type = Option<String>, format = DateTime)]
    dead_before: Option<Timestamp>,
    /// The error contains this text, in this case.
    #[schema(min_length = 1, max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    error_contains: Option<String>,
}

/// Which dead letters to requeue, and how. Either `ids` or `filter` is needed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = BulkRequeue)]
pub(super) struct BulkRequeueBody {
    /// These events, as far as they are dead letters.
    #[schema(max_items = 10000)]
    ids: Option<Vec<String>>,
    /// All that match, newest first.
    filter: Option<FilterBody>,
    /// Only say what would be changed.
    #[serde(default)]
    dry_run: bool,
    /// Dead letters at most; 10000 when it is not given.
    #[schema(minimum = 1, maximum = 10000)]
    #[serde(default, deserialize_with = "whole::optional")]
    limit: Option<u32>,
    /// They become due at random instants within so many milliseconds; at once when it is not given.
    #[schema(maximum = 316_224_000_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    spread_ms: Option<u64>,
    /// Why, for each event's log.
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    note: Option<String>,
    /// `next_cursor` of an answer to the same filter: goes on behind what was looked at there.
    #[schema(min_length = 23, max_length = 1382, pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// Which dead letters to discard. Either `ids` or `filter` is needed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = BulkDiscard)]
pub(super) struct BulkDiscardBody {
    /// These events, as far as they are dead letters.
    #[schema(max_items = 10000)]
    ids: Option<Vec<String>>,
    /// All that match, newest first.
    filter: Option<FilterBody>,
    /// Only say what would be changed.
    #[serde(default)]
    dry_run: bool,
    /// Dead letters at most; 10000 when it is not given.
    #[schema(minimum = 1, maximum = 10000)]
    #[serde(default, deserialize_with = "whole::optional")]
    limit: Option<u32>,
    /// Why; becomes each event's `last_error`, and stands in its log.
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    note: Option<String>,
    /// `next_cursor` of an answer to the same filter: goes on behind what was looked at there.
    #[schema(min_length = 23, max_length = 1382, pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// What became of many dead letters.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BulkResult)]
pub(super) struct BulkView {
    /// Dead letters that were found.
    matched: u64,
    /// Those that were changed: none in a dry run, fewer than found when somebody else was faster or holds some locked.
    changed: u64,
    /// Up to 100 of those that were changed; in a dry run, of those that were found.
    #[schema(value_type = Vec<String>, max_items = 100)]
    sample_ids: Vec<EventId>,
    /// Whether there is more: the same request goes on, best with `next_cursor`.
    more: bool,
    /// Where a filter goes on; null when there is no more, and for ids.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// What both requests have in common.
struct Asked {
    ids: Option<Vec<String>>,
    filter: Option<FilterBody>,
    cursor: Option<String>,
    dry_run: bool,
    limit: Option<u32>,
    note: Option<String>,
}

/// Requeue many dead letters: pending, with no attempts spent.
#[utoipa::path(
    post, path = "/v1/dead-letters/requeue", tag = "dead letters", operation_id = "requeueDeadLetters",
    params(("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default")),
    request_body = BulkRequeueBody,
    responses((status = 200, description = "What was changed.", body = BulkView), BulkProblems)
)]
pub(super) async fn requeue(
    Extension(caller): Extension<Caller>,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    Json(body): Json<BulkRequeueBody>,
) -> Answer<Answered<BulkView>> {
    let BulkRequeueBody { ids, filter, dry_run, limit, spread_ms, note, cursor } = body;
    let spread_ms = spread_ms.unwrap_or(0);
    if spread_ms > MAX_DELAY_MS {
        return Err(Problem::field("/spread_ms", format!("must be a whole number from 0 to {MAX_DELAY_MS}")));
    }
    let change = BulkChange::Requeue { spread: Duration::from_millis(spread_ms) };
    apply(&caller, &outbox, Asked { ids, filter, cursor, dry_run, limit, note }, change, "requeued").await
}

/// Discard many dead letters: skipped, for good.
#[utoipa::path(
    post, path = "/v1/dead-letters/discard", tag = "dead letters", operation_id = "discardDeadLetters",
    params(("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default")),
    request_body = BulkDiscardBody,
    responses((status = 200, description = "What was changed.", body = BulkView), BulkProblems)
)]
pub(super) async fn discard(
    Extension(caller): Extension<Caller>,
    Query(NoParameters): Query<NoParameters>,
    outbox: Outbox,
    Json(body): Json<BulkDiscardBody>,
) -> Answer<Answered<BulkView>> {
    let BulkDiscardBody { ids, filter, dry_run, limit, note, cursor } = body;
    if !outbox.store().abilities().await?.discard {
        return Err(Problem::invalid("this outbox's table has no status for a dead letter that was given up"));
    }
    let change = BulkChange::Discard { reason: note.clone().unwrap_or_else(|| "discarded".to_owned()) };
    apply(&caller, &outbox, Asked { ids, filter, cursor, dry_run, limit, note }, change, "discarded").await
}

async fn apply(
    caller: &Caller,
    outbox: &Outbox,
    asked: Asked,
    change: BulkChange,
    done: &'static str,
) -> Answer<Answered<BulkView>> {
    check_text(asked.note.as_deref(), "/note", MAX_REASON_CHARS)?;
    let limit = asked.limit.unwrap_or(MAX_BULK);
    if !(1..=MAX_BULK).contains(&limit) {
        return Err(Problem::field("/limit", format!("must be 1 to {MAX_BULK}")));
    }
    let (selection, list) = selection(outbox, &asked)?;
    let request = BulkRequest { selection, change, limit, dry_run: asked.dry_run };
    let report = change_many(outbox.store(), &request, &caller.actor(asked.note.as_deref())).await?;
    let BulkReport { matched, changed, sample_ids, more, next } = report;
    if !asked.dry_run {
        let note = asked.note.as_deref();
        tracing::info!(
            outbox = outbox.outbox(),
            token = caller.name(),
            change = done,
            matched,
            changed,
            note,
            "dead letters changed"
        );
    }
    let next_cursor = next.zip(list).map(|(next, list)| list.cursor(next.dead_at, &next.id));
    Ok(Answered(BulkView { matched, changed, sample_ids, more, next_cursor }))
}

/// Which dead letters are meant, and the list that cursors of a filter belong to.
fn selection(outbox: &Outbox, asked: &Asked) -> Answer<(Selection, Option<List>)> {
    let ids = asked.ids.as_deref().filter(|ids| !ids.is_empty());
    let filter = asked.filter.as_ref().filter(|filter| !filter.is_empty());
    match (ids, filter) {
        (None, None) => Err(Problem::new(
            Code::EmptyFilter,
            "the request would mean every dead letter: give `ids`, or a `filter` with at least one key",
        )),
        (Some(_), Some(_)) => Err(Problem::field("/filter", "must not be given together with `ids`")),
        (Some(ids), None) => {
            if asked.cursor.is_some() {
                return Err(Problem::field("/cursor", "belongs to a filter, not to ids"));
            }
            Ok((Selection::Ids(parse_ids(outbox, ids)?), None))
        }
        (None, Some(filter)) => {
            let filter = filter.checked()?;
            let list = list_of(outbox, &filter);
            let after = asked.cursor.as_deref().map(|cursor| place(outbox, list, cursor)).transpose()?;
            Ok((Selection::Filter { filter, after }, Some(list)))
        }
    }
}

fn parse_ids(outbox: &Outbox, ids: &[String]) -> Answer<Vec<EventId>> {
    if ids.len() > MAX_BULK as usize {
        return Err(Problem::field("/ids", format!("must be at most {MAX_BULK}")));
    }
    let parse = |(index, id): (usize, &String)| {
        let problem = || Problem::field(format!("/ids/{index}"), "can be the id of no event");
        outbox.store().parse_id(id).ok_or_else(problem)
    };
    ids.iter().enumerate().map(parse).collect()
}

fn list_of(outbox: &Outbox, filter: &DeadLetterFilter) -> List {
    let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let filters = [
        Some(filter.types.join(" ")),
        filter.subject.clone(),
        filter.error_contains.clone(),
        instant(filter.dead_after),
        instant(filter.dead_before),
    ];
    List::new(&outbox.list_name("dead-letter-changes"), &filters.each_ref().map(Option::as_deref))
}

fn place(outbox: &Outbox, list: List, cursor: &str) -> Answer<DeadLetterPosition> {
    let (dead_at, id) = list.place(cursor)?;
    let id = outbox.store().parse_id(&id.to_string()).ok_or_else(not_a_cursor)?;
    Ok(DeadLetterPosition { dead_at, id })
}

impl FilterBody {
    fn is_empty(&self) -> bool {
        self.types.is_empty()
            && self.subject.is_none()
            && self.dead_after.is_none()
            && self.dead_before.is_none()
            && self.error_contains.is_none()
    }

    fn checked(&self) -> Answer<DeadLetterFilter> {
        check_types(&self.types, |index| format!("/filter/types/{index}"))?;
        check_text(self.subject.as_deref(), "/filter/subject", MAX_SUBJECT_CHARS)?;
        check_text(self.error_contains.as_deref(), "/filter/error_contains", MAX_ERROR_CHARS)?;
        if self.error_contains.as_ref().is_some_and(String::is_empty) {
            return Err(Problem::field("/filter/error_contains", "must not be empty: every error contains that"));
        }
        let mut types = self.types.clone();
        types.sort_unstable();
        types.dedup();
        Ok(DeadLetterFilter {
            types,
            subject: self.subject.clone(),
            error_contains: self.error_contains.clone(),
            dead_after: self.dead_after,
            dead_before: self.dead_before,
        })
    }
}
