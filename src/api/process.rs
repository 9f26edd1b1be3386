//! One bounded run over everything that is due: what a scheduler calls.

use std::str::FromStr;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::ApiState;
use super::body::OptionalJson;
use super::openapi::problem_set;
use super::problem::{Answer, Problem};
use super::query::{FromQuery, Query, QueryReader, check_text, check_types};
use super::whole;
use crate::budget::Budget;
use crate::event::MAX_SUBJECT_CHARS;
use crate::processor::RunRequest;
use crate::run::{RunReport, Trigger};

problem_set!(ProcessProblems: Plain, InvalidBudget, ShuttingDown);
problem_set!(ProcessBodyProblems: WithBody, InvalidBudget, ShuttingDown);

const DEFAULT_RUNTIME_MS: u64 = 50_000;
const MAX_RUNTIME_MS: u64 = 840_000;

/// Whether the answer waits for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub(super) enum Mode {
    /// It does.
    Sync,
    /// It says where to ask for it.
    Async,
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "sync" => Ok(Self::Sync),
            "async" => Ok(Self::Async),
            _ => Err("must be `sync` or `async`"),
        }
    }
}

impl TryFrom<String> for Mode {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// What a run is asked to do; the same from a query and from a body.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Process, examples(json!({"batch_size": 100, "max_runtime_ms": 50000})))]
pub(super) struct Parameters {
    /// Events that the run may claim; 100 when it is not given.
    #[schema(minimum = 1, maximum = 10000)]
    #[param(minimum = 1, maximum = 10000)]
    #[serde(default, deserialize_with = "whole::optional")]
    batch_size: Option<u64>,
    /// How long the run may take; 50000, or the configured cap if that is smaller, when it is not given.
    #[schema(minimum = 1, maximum = 840_000)]
    #[param(minimum = 1, maximum = 840_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    max_runtime_ms: Option<u64>,
    /// Time that must be left to claim another event; 0 when it is not given.
    #[schema(maximum = 840_000)]
    #[param(maximum = 840_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    min_remaining_ms: Option<u64>,
    /// Only events of these types.
    #[schema(max_items = 100)]
    types: Option<Vec<String>>,
    /// Only events of this subject.
    #[schema(max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    subject: Option<String>,
    /// The outbox; all of them when it is not given.
    #[schema(example = "default")]
    outbox: Option<String>,
    /// Whether the answer waits for the run; `sync` when it is not given.
    mode: Option<Mode>,
}

impl FromQuery for Parameters {
    fn from_query(query: &mut QueryReader) -> Answer<Self> {
        let mode = query.one("mode")?.map(|text| text.parse().map_err(|detail: &str| Problem::field("/mode", detail)));
        let types = query.all("types");
        Ok(Self {
            batch_size: query.number("batch_size", 0..=u64::MAX)?,
            max_runtime_ms: query.number("max_runtime_ms", 0..=u64::MAX)?,
            min_remaining_ms: query.number("min_remaining_ms", 0..=u64::MAX)?,
            types: (!types.is_empty()).then_some(types),
            subject: query.one("subject")?,
            outbox: query.one("outbox")?,
            mode: mode.transpose()?,
        })
    }
}

impl Parameters {
    /// Both together, for a request that has a query and a body; they must not speak of the same thing.
    fn merged(self, body: Self) -> Answer<Self> {
        Ok(Self {
            batch_size: either("batch_size", self.batch_size, body.batch_size)?,
            max_runtime_ms: either("max_runtime_ms", self.max_runtime_ms, body.max_runtime_ms)?,
            min_remaining_ms: either("min_remaining_ms", self.min_remaining_ms, body.min_remaining_ms)?,
            types: either("types", self.types, body.types)?,
            subject: either("subject", self.subject, body.subject)?,
            // Naming the same one twice leaves no doubt.
            outbox: either("outbox", self.outbox.filter(|name| body.outbox.as_ref() != Some(name)), body.outbox)?,
            mode: either("mode", self.mode, body.mode)?,
        })
    }

    /// The run that is asked for, and whether to wait for it.
    fn into_request(self, cap: Duration) -> Answer<(RunRequest, Mode)> {
        check_text(self.subject.as_deref(), "/subject", MAX_SUBJECT_CHARS)?;
        let types = self.types.unwrap_or_default();
        check_types(&types, |index| format!("/types/{index}"))?;
        let cap_ms = u64::try_from(cap.as_millis()).unwrap_or(MAX_RUNTIME_MS).min(MAX_RUNTIME_MS);
        let batch_size = self.batch_size.unwrap_or(100);
        let batch_size = u32::try_from(batch_size).ok().filter(|size| (1..=Budget::MAX_BATCH_SIZE).contains(size));
        let Some(batch_size) = batch_size else {
            return Err(Problem::field("/batch_size", "must be a whole number from 1 to 10000"));
        };
        let max_runtime_ms = self.max_runtime_ms.unwrap_or(DEFAULT_RUNTIME_MS.min(cap_ms));
        if !(1..=cap_ms).contains(&max_runtime_ms) {
            return Err(Problem::field("/max_runtime_ms", format!("must be a whole number from 1 to {cap_ms}")));
        }
        let min_remaining_ms = self.min_remaining_ms.unwrap_or(0);
        if min_remaining_ms > MAX_RUNTIME_MS {
            return Err(Problem::field(
                "/min_remaining_ms",
                format!("must be a whole number from 0 to {MAX_RUNTIME_MS}"),
            ));
        }
        let budget = Budget {
            batch_size,
            max_runtime: Duration::from_millis(max_runtime_ms),
            min_remaining: Duration::from_millis(min_remaining_ms),
        };
        let request = RunRequest { budget, trigger: Trigger::Http, types, subject: self.subject };
        Ok((request, self.mode.unwrap_or(Mode::Sync)))
    }
}

fn either<T>(name: &str, query: Option<T>, body: Option<T>) -> Answer<Option<T>> {
    if query.is_some() && body.is_some() {
        return Err(Problem::field(format!("/{name}"), "is given in the query and in the body"));
    }
    Ok(query.or(body))
}

/// Process what is due, within a budget.
///
/// An event that fails is not a run that fails: the answer is 200 with the counts.
#[utoipa::path(
    get, path = "/v1/process", tag = "process", operation_id = "processByGet",
    params(Parameters),
    responses(
        (status = 200, description = "The run's report.", body = RunReport),
        (status = 202, description = "The run has begun; `location` leads to its report.", body = RunReport,
            headers(("location" = String, description = "The run's path."))),
        ProcessProblems,
    )
)]
pub(super) async fn by_get(State(state): State<ApiState>, Query(query): Query<Parameters>) -> Answer<Response> {
    run(&state, query).await
}

/// Process what is due, within a budget; parameters in the query, the body or both, each once.
#[utoipa::path(
    post, path = "/v1/process", tag = "process", operation_id = "process",
    params(Parameters),
    request_body(content = Option<Parameters>),
    responses(
        (status = 200, description = "The run's report.", body = RunReport),
        (status = 202, description = "The run has begun; `location` leads to its report.", body = RunReport,
            headers(("location" = String, description = "The run's path."))),
        ProcessBodyProblems,
    )
)]
pub(super) async fn by_post(
    State(state): State<ApiState>,
    Query(query): Query<Parameters>,
    OptionalJson(body): OptionalJson<Parameters>,
) -> Answer<Response> {
    run(&state, query.merged(body)?).await
}

async fn run(state: &ApiState, parameters: Parameters) -> Answer<Response> {
    let outboxes = state.outboxes();
    let name = parameters.outbox.clone();
    let name = name.as_deref();
    if name.is_some() {
        outboxes.choose(name)?;
    }
    let (request, mode) = parameters.into_request(state.settings().max_runtime_cap)?;
    match mode {
        // Awaited in place: when the caller hangs up this future is dropped, and the run learns of it by that.
        Mode::Sync => Ok(axum::Json(outboxes.run(request, name).await?).into_response()),
        Mode::Async => {
            let report = outboxes.start(request, name).await?;
            let elsewhere = name.filter(|name| *name != outboxes.home().outbox());
            let elsewhere = elsewhere.map(|name| format!("?outbox={name}")).unwrap_or_default();
            let location = HeaderValue::from_str(&format!("/v1/runs/{}{elsewhere}", report.run_id));
            let location = location.map_err(|error| Problem::internal(error.to_string()))?;
            Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], axum::Json(report)).into_response())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Duration = Duration::from_mins(14);

    #[test]
    fn the_default_runtime_is_lowered_to_a_smaller_cap_but_a_wish_beyond_it_is_refused() {
        let runtime = |wish, cap| {
            let parameters = Parameters { max_runtime_ms: wish, ..Parameters::default() };
            parameters.into_request(cap).map(|(request, _)| request.budget.max_runtime).ok()
        };
        assert_eq!(runtime(None, CAP), Some(Duration::from_secs(50)));
        assert_eq!(runtime(None, Duration::from_secs(10)), Some(Duration::from_secs(10)));
        assert_eq!(runtime(Some(10_001), Duration::from_secs(10)), None);
        assert_eq!(runtime(Some(0), CAP), None);
    }

    #[test]
    fn a_parameter_in_the_query_and_in_the_body_is_refused() {
        let query = || Parameters { batch_size: Some(5), ..Parameters::default() };
        let body = Parameters { subject: Some("s".to_owned()), ..Parameters::default() };
        let merged = query().merged(body).unwrap();
        assert_eq!((merged.batch_size, merged.subject.as_deref()), (Some(5), Some("s")));
        assert!(query().merged(query()).is_err());
        let of = |name: &str| Parameters { outbox: Some(name.to_owned()), ..Parameters::default() };
        assert_eq!(of("a").merged(of("a")).unwrap().outbox.as_deref(), Some("a"));
        assert!(of("a").merged(of("b")).is_err());
    }

    #[test]
    fn a_batch_is_1_to_10000() {
        for (batch_size, valid) in [(0, false), (1, true), (10_000, true), (10_001, false), (u64::MAX, false)] {
            let parameters = Parameters { batch_size: Some(batch_size), ..Parameters::default() };
            assert_eq!(parameters.into_request(CAP).is_ok(), valid, "{batch_size}");
        }
    }
}
