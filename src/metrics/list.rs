//! Every metric with its kind, its labels and what it means.

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations, in buckets.
    Histogram,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

pub(super) const EVENTS: &str = "outbox_events";
pub(super) const OLDEST_DUE_AGE: &str = "outbox_oldest_due_age_seconds";
pub(super) const UNROUTED_DUE: &str = "outbox_unrouted_due_events";
pub(super) const LAST_SUCCESSFUL_RUN: &str = "outbox_last_successful_run_timestamp_seconds";
pub(super) const STATS_LAST_SUCCESS: &str = "outbox_stats_last_success_timestamp_seconds";
pub(super) const INFLIGHT: &str = "outbox_inflight";
pub(super) const CONNECTIONS: &str = "outbox_pool_connections";
pub(super) const MAX_CONNECTIONS: &str = "outbox_pool_max_connections";
pub(super) const BUILD_INFO: &str = "outbox_build_info";
pub(super) const ATTEMPTS: &str = "outbox_attempts_total";
pub(super) const DEAD_LETTERS: &str = "outbox_dead_letters_total";
pub(super) const RUNS: &str = "outbox_runs_total";
pub(super) const LEASES_REAPED: &str = "outbox_leases_reaped_total";
pub(super) const LEASES_LOST: &str = "outbox_leases_lost_total";
pub(super) const PURGED: &str = "outbox_purged_events_total";
pub(super) const AUTH_FAILURES: &str = "outbox_auth_failures_total";
pub(super) const HTTP_REQUESTS: &str = "outbox_http_requests_total";
pub(super) const ATTEMPT_DURATION: &str = "outbox_attempt_duration_seconds";
pub(super) const QUEUE_WAIT: &str = "outbox_queue_wait_seconds";
pub(super) const RUN_DURATION: &str = "outbox_run_duration_seconds";
pub(super) const HTTP_DURATION: &str = "outbox_http_request_duration_seconds";

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help }
}

/// Every metric, in the order of the README's table.
pub const METRICS: [Metric; 21] = [
    gauge(OLDEST_DUE_AGE, &["outbox", "type"], "How long the oldest due event has been waiting; 0 when none is due."),
    gauge(
        EVENTS,
        &["outbox", "type", "state"],
        "Events by state: due, scheduled, processing, dead_letter. A count stops at 100000 a lane.",
    ),
    gauge(UNROUTED_DUE, &["outbox"], "Due events that no route takes."),
    gauge(LAST_SUCCESSFUL_RUN, &[], "When a run last ended without an error, in any instance; 0 when none is known."),
    gauge(STATS_LAST_SUCCESS, &[], "When events were last counted, in the outbox where that is longest ago."),
    gauge(INFLIGHT, &[], "Handlers that run in this instance."),
    counter(ATTEMPTS, &["type", "outcome"], "Attempts that ended, by what the handler said."),
    counter(DEAD_LETTERS, &["type", "reason"], "Events that became dead letters."),
    counter(RUNS, &["trigger", "stop_reason"], "Runs that ended, by what set them going and why they stopped."),
    counter(LEASES_REAPED, &[], "Leases that expired and were taken back: their worker died or lost the database."),
    counter(LEASES_LOST, &[], "Settlements that came too late and changed nothing."),
    counter(PURGED, &["outbox"], "Finished events that were deleted because they were past their retention."),
    histogram(ATTEMPT_DURATION, &[], "How long handlers took."),
    histogram(QUEUE_WAIT, &[], "How long events were due before they were claimed."),
    histogram(RUN_DURATION, &[], "How long runs took."),
    gauge(CONNECTIONS, &["outbox", "state"], "Connections to the database: in_use, idle."),
    gauge(MAX_CONNECTIONS, &["outbox"], "Connections to the database that there may be."),
    counter(
        HTTP_REQUESTS,
        &["route", "method", "status"],
        "Requests that were answered, by the pattern of their path.",
    ),
    histogram(HTTP_DURATION, &["route"], "How long answers took, by the pattern of the request's path."),
    counter(AUTH_FAILURES, &["reason"], "Requests that were not let in: missing_token, unknown_token, missing_scope."),
    gauge(BUILD_INFO, &["version"], "1, with the program's version."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_follow_the_rules() {
        for (place, metric) in METRICS.iter().enumerate() {
            let Metric { name, kind, help, .. } = metric;
            assert!(METRICS[..place].iter().all(|other| other.name != *name), "{name}");
            assert!(name.starts_with("outbox_"), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert!(*kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
            assert!(help.ends_with('.') && !help.contains('"'), "{name}");
        }
    }
}
