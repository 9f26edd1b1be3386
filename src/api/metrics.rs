//! What has been measured, as Prometheus reads it.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use super::ApiState;
use super::openapi::problem_set;
use super::problem::Answer;
use super::query::{NoParameters, Query};
use crate::metrics::exporter;

/// How long an answer waits for counts that are too old. Without them it says when they were last made.
const PATIENCE: Duration = Duration::from_secs(2);

problem_set!(MetricsProblems: Bare, InvalidRequest, Unauthorized, Forbidden, Internal);

/// Metrics in Prometheus' text format. Needs no token where `server.public_metrics` says so.
#[utoipa::path(
    get, path = "/metrics", tag = "stats", operation_id = "metrics",
    responses(
        (status = 200, description = "Prometheus' text format, version 0.0.4.", body = String, content_type = "text/plain"),
        MetricsProblems,
    )
)]
pub(super) async fn read(State(state): State<ApiState>, Query(NoParameters): Query<NoParameters>) -> Answer<Response> {
    // The renewal goes on without us, and so does what it finds.
    let _ = tokio::time::timeout(PATIENCE, state.sampler().renew_all()).await;
    state.sampler().note_connections();
    let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(exporter::CONTENT_TYPE));
    Ok(([content_type], exporter::text()).into_response())
}
