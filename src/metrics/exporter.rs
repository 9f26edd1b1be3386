//! The service's own recorder: what has been recorded, as Prometheus reads it. It opens no port; `GET /metrics` asks it.

use std::sync::OnceLock;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::list::{ATTEMPT_DURATION, HTTP_DURATION, Kind, METRICS, QUEUE_WAIT, RUN_DURATION};
use super::process::register;

/// The text's media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// From a millisecond to five minutes: timeouts end there.
const ATTEMPT_BUCKETS: [f64; 13] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];
/// From ten milliseconds, as after a commit, to days of a scheduler that nobody missed.
const WAIT_BUCKETS: [f64; 15] =
    [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0, 21600.0, 86400.0, 259200.0];
/// A run is an hour at most; most find nothing to do.
const RUN_BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0];
/// Requests that make a run take as long as it does.
const HTTP_BUCKETS: [f64; 12] = [0.001, 0.005, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 60.0, 300.0, 900.0];

static EXPORTER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Begins to keep what is recorded, once in a process, and makes every metric exist. Where the application has a recorder
/// of its own that one goes on, and there is nothing to export here.
pub fn install<'a>(outboxes: impl IntoIterator<Item = &'a str>) {
    let is_new = EXPORTER.get().is_none();
    if EXPORTER.get_or_init(recorder).is_some() || is_new {
        register(outboxes);
    }
}

fn recorder() -> Option<PrometheusHandle> {
    let buckets: [(&str, &[f64]); 4] = [
        (ATTEMPT_DURATION, &ATTEMPT_BUCKETS),
        (QUEUE_WAIT, &WAIT_BUCKETS),
        (RUN_DURATION, &RUN_BUCKETS),
        (HTTP_DURATION, &HTTP_BUCKETS),
    ];
    let mut builder = PrometheusBuilder::new();
    for (name, bounds) in buckets {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds).ok()?;
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).ok()?;
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.help),
            Kind::Gauge => describe_gauge!(metric.name, metric.help),
            Kind::Histogram => describe_histogram!(metric.name, Unit::Seconds, metric.help),
        }
    }
    Some(handle)
}

/// Everything that has been recorded, in Prometheus' text format; nothing without [`install`].
#[must_use]
pub fn text() -> String {
    EXPORTER.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

/// Puts the durations recorded since the last call into their buckets. Without it they would pile up until somebody reads.
pub fn upkeep() {
    if let Some(handle) = EXPORTER.get().and_then(Option::as_ref) {
        handle.run_upkeep();
    }
}
