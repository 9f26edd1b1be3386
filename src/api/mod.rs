//! The HTTP interface: `/v1`, health, and its own description.
//!
//! [`router`] is the table of contents: every path, its methods, the scope it demands, the file that answers. A request
//! passes, from the outside in: its context (id, headers, the writing of problems), the trimming of a trailing slash, the
//! token's scope, then the handler with its strictly read query and body. Handlers translate: they call the store or the
//! processor and turn what comes back into an answer. They hold no SQL, run no event handler and keep no state.

mod auth;
mod body;
mod code;
mod context;
mod cursor;
mod dead_letter_bulk;
mod dead_letters;
mod event_batch;
mod event_cancel;
mod event_list;
mod event_process;
mod event_settle;
mod event_view;
mod events;
mod health;
mod in_flight;
mod metrics;
mod new_event_body;
mod openapi;
mod outbox;
mod page;
mod path;
mod problem;
mod process;
mod query;
mod runs;
mod server;
mod stats;
#[cfg(test)]
mod test_router;
mod whole;
mod write_deadline;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter, get, on, post};
use tower::Layer as _;
use tower_http::normalize_path::NormalizePathLayer;

pub use auth::{EmptySecret, Scope, Scopes, Token, UnknownScope};
pub use event_view::EventView;
pub use openapi::openapi_yaml;
pub use server::serve;

use crate::processor::Outboxes;
use crate::sampler::Sampler;
use problem::{Code, Problem};

/// How the interface behaves.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// Who may do what; with none, everybody may do everything.
    pub tokens: Vec<Token>,
    /// What callers are called while there are no tokens.
    pub nobody: String,
    /// Bytes of one request's body.
    pub max_body_bytes: usize,
    /// Bytes of one event's payload.
    pub max_payload_bytes: usize,
    /// The longest run that a request may ask for.
    pub max_runtime_cap: Duration,
    /// Whether `/metrics` asks for no token.
    pub public_metrics: bool,
}

impl Default for ApiSettings {
    /// No tokens, bodies of 1 MiB, payloads of 256 KiB, runs of 14 minutes, metrics not public.
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            nobody: "anybody".to_owned(),
            max_body_bytes: 1024 * 1024,
            max_payload_bytes: 256 * 1024,
            max_runtime_cap: Duration::from_mins(14),
            public_metrics: false,
        }
    }
}

/// What every handler works with. Cheap to clone.
#[derive(Clone)]
struct ApiState {
    shared: Arc<Shared>,
}

struct Shared {
    settings: ApiSettings,
    outboxes: Outboxes,
    sampler: Sampler,
}

impl ApiState {
    fn new(settings: ApiSettings, sampler: Sampler) -> Self {
        Self { shared: Arc::new(Shared { settings, outboxes: sampler.outboxes().clone(), sampler }) }
    }

    fn settings(&self) -> &ApiSettings {
        &self.shared.settings
    }

    fn outboxes(&self) -> &Outboxes {
        &self.shared.outboxes
    }

    fn sampler(&self) -> &Sampler {
        &self.shared.sampler
    }
}

/// All paths of the interface, over these outboxes, or over the one of a processor.
pub fn router(settings: ApiSettings, outboxes: impl Into<Outboxes>) -> Router {
    router_with(settings, Sampler::new(outboxes))
}

/// The same over a sampler's outboxes, which somebody may keep fresh.
pub fn router_with(settings: ApiSettings, sampler: Sampler) -> Router {
    let state = ApiState::new(settings, sampler);
    let demand = |any_of: &'static [Scope], methods: MethodRouter<ApiState>| {
        let guard = auth::Guard { state: state.clone(), any_of };
        methods.route_layer(from_fn_with_state(guard, auth::authorize))
    };
    let metrics = get(metrics::read);
    let metrics = if state.settings().public_metrics { metrics } else { demand(&[Scope::Metrics], metrics) };
    let paths = Router::new()
        .route("/", get(page::dashboard))
        .merge(page::files())
        .route("/v1/events", demand(&[Scope::Enqueue], post(events::enqueue)))
        .route("/v1/events", demand(&[Scope::Read], get(event_list::list)))
        .route("/v1/events/batch", demand(&[Scope::Enqueue], post(event_batch::enqueue)))
        .route("/v1/events/in-flight", demand(&[Scope::Read], get(in_flight::read)))
        .route("/v1/events/{id}", demand(&[Scope::Read], get(events::read)))
        .route("/v1/events/{id}/process", demand(&[Scope::Process], post(event_process::process)))
        .route("/v1/events/{id}/cancel", demand(&[Scope::Operate], post(event_cancel::cancel)))
        // These two ask for the claim token in their bodies instead.
        .route("/v1/events/{id}/settle", post(event_settle::settle))
        .route("/v1/events/{id}/extend", post(event_settle::extend))
        .route("/v1/process", demand(&[Scope::Process], get_that_acts(process::by_get).post(process::by_post)))
        .route("/v1/runs", demand(&[Scope::Read], get(runs::list)))
        .route("/v1/runs/{run_id}", demand(&[Scope::Process, Scope::Read], get(runs::read)))
        .route("/v1/dead-letters", demand(&[Scope::Read], get(dead_letters::list)))
        .route("/v1/dead-letters/requeue", demand(&[Scope::Operate], post(dead_letter_bulk::requeue)))
        .route("/v1/dead-letters/discard", demand(&[Scope::Operate], post(dead_letter_bulk::discard)))
        .route("/v1/dead-letters/{id}/requeue", demand(&[Scope::Operate], post(dead_letters::requeue)))
        .route("/v1/dead-letters/{id}/discard", demand(&[Scope::Operate], post(dead_letters::discard)))
        .route("/v1/stats", demand(&[Scope::Read], get(stats::read)))
        .route("/metrics", metrics)
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/openapi.yaml", get(openapi::read))
        .route_layer(from_fn(context::note_route))
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed(None) })
        .fallback(|| async { Problem::new(Code::NotFound, "there is nothing at this path") })
        .with_state(state.clone());
    // Slashes are trimmed around the router, not inside it: layers of a router run after it has chosen the path.
    let trimmed = NormalizePathLayer::trim_trailing_slash().layer(paths);
    Router::new().fallback_service(trimmed).layer(from_fn(context::surround))
}

/// GET for a path that acts: unlike on a plain `get`, HEAD is refused, and not named among the allowed methods.
fn get_that_acts<H, T>(handler: H) -> MethodRouter<ApiState>
where
    H: Handler<T, ApiState>,
    T: 'static,
{
    let refuse = || async { Problem::method_not_allowed(Some("GET, POST")) };
    on(MethodFilter::GET, handler).head(refuse).fallback(refuse)
}
