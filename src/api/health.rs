//! Whether the process lives, and whether it can work.

use axum::Json;
use axum::extract::State;
use futures_util::future::try_join_all;
use serde::Serialize;
use utoipa::ToSchema;

use super::ApiState;
use super::openapi::problem_set;
use super::problem::{Answer, shutting_down};

problem_set!(ReadyProblems: Bare, DatabaseUnavailable, ShuttingDown, Internal);

/// How the instance is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `alive` or `ready`.
    #[schema(example = "ready")]
    status: &'static str,
}

/// Whether the process answers. Asks no database: restarting an instance does not mend one.
#[utoipa::path(
    get, path = "/livez", tag = "health", operation_id = "livez", security(()),
    responses((status = 200, description = "The process answers.", body = Health))
)]
pub(super) async fn livez() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Whether the instance can work: database, schema, not shutting down.
#[utoipa::path(
    get, path = "/readyz", tag = "health", operation_id = "readyz", security(()),
    responses((status = 200, description = "The instance can work.", body = Health), ReadyProblems)
)]
pub(super) async fn readyz(State(state): State<ApiState>) -> Answer<Json<Health>> {
    if state.outboxes().is_shutting_down() {
        return Err(shutting_down());
    }
    try_join_all(state.outboxes().iter().map(|processor| processor.store().ready())).await?;
    Ok(Json(Health { status: "ready" }))
}
