//! What stands in the lanes, what ended in the last hour and when the last run was: what a dashboard shows first.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;

use super::ApiState;
use super::openapi::problem_set;
use super::problem::{Answer, Problem};
use super::query::{NoParameters, Query, outbox_of};
use crate::sampler::StatsView;

problem_set!(StatsProblems: Plain);

/// Extracts the outbox that narrows the answer, if one is named.
pub(super) struct Narrowed(Option<String>);

impl FromRequestParts<ApiState> for Narrowed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let name = outbox_of(parts.uri.query().unwrap_or_default())?;
        if name.is_some() {
            state.outboxes().choose(name.as_deref())?;
        }
        Ok(Self(name))
    }
}

/// Count what stands in the lanes. The counts are some seconds old (`as_of` says when they were made) and stop at 100,000 a
/// lane, or earlier where there are many lanes; ages are exact.
#[utoipa::path(
    get, path = "/v1/stats", tag = "stats", operation_id = "stats",
    params(
        ("outbox" = Option<String>, Query, description = "Only this outbox; all when it is not given.", example = "default"),
    ),
    responses((status = 200, description = "What stands in the lanes.", body = StatsView), StatsProblems)
)]
pub(super) async fn read(
    State(state): State<ApiState>,
    Query(NoParameters): Query<NoParameters>,
    Narrowed(outbox): Narrowed,
) -> Answer<Json<StatsView>> {
    Ok(Json(state.sampler().view(outbox.as_deref()).await?))
}
