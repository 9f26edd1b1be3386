//! What runs have done: one, or the list of them.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::cursor::{List, not_a_cursor};
use super::openapi::problem_set;
use super::outbox::AnyOutbox;
use super::path::PathUuid;
use super::problem::{Answer, Code, Problem};
use super::query::{FromQuery, NoParameters, Query, QueryReader};
use crate::run::RunRecord;
use crate::store::RunPage;

problem_set!(ListProblems: Plain);
problem_set!(ReadProblems: Plain, RunNotFound);

/// Which part of the list.
pub(super) struct ListQuery {
    list: List,
    page: RunPage,
}

impl FromQuery for ListQuery {
    fn from_query(query: &mut QueryReader) -> Answer<Self> {
        let list = List::new("runs", &[]);
        let place = query.one("cursor")?.map(|cursor| list.place(&cursor)).transpose()?;
        let after = match place {
            Some((at, id)) => Some((at, id.uuid().ok_or_else(not_a_cursor)?)),
            None => None,
        };
        Ok(Self { list, page: RunPage { after, limit: query.limit()? } })
    }
}

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunList)]
pub(super) struct RunsView {
    /// At most `limit` runs.
    data: Vec<RunRecord>,
    /// Where the list goes on; null only at its end.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// List runs, newest first. They are kept for 7 days; idle ones are thinned to one a minute.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "listRuns",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, description = "Runs at most; 50 when it is not given, lowered to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    responses((status = 200, description = "A page of runs.", body = RunsView), ListProblems)
)]
pub(super) async fn list(Query(query): Query<ListQuery>, AnyOutbox(outbox): AnyOutbox) -> Answer<Json<RunsView>> {
    let data = outbox.store().runs(&query.page).await?;
    let full = data.len() >= query.page.limit as usize;
    let last = data.last().filter(|_| full);
    let next_cursor = last.map(|run| query.list.cursor(run.started_at, &run.report.run_id.into()));
    Ok(Json(RunsView { data, next_cursor }))
}

/// Read a run's report. Any instance answers; the id of an idle run that the caller waited for is not kept.
#[utoipa::path(
    get, path = "/v1/runs/{run_id}", tag = "runs", operation_id = "readRun",
    params(
        ("run_id" = Uuid, Path, description = "The run's id."),
        ("outbox" = Option<String>, Query, description = "The outbox; the default one when it is not given.", example = "default"),
    ),
    responses((status = 200, description = "The run's report.", body = RunRecord), ReadProblems)
)]
pub(super) async fn read(
    PathUuid(run_id): PathUuid,
    Query(NoParameters): Query<NoParameters>,
    AnyOutbox(outbox): AnyOutbox,
) -> Answer<Json<RunRecord>> {
    outbox
        .store()
        .run(run_id)
        .await?
        .map(Json)
        .ok_or_else(|| Problem::new(Code::RunNotFound, "there is no run with this id"))
}
