//! Export of spans, where the settings ask for it: begun before the first run, flushed at the end.

use std::time::Duration;

use crate::otlp::{Endpoint, Exporter, Tracer};

/// How long the end of a program waits for a collector, if its grace time leaves so much; and how long in any case.
const FLUSH: Duration = Duration::from_secs(2);
const SHORT_FLUSH: Duration = Duration::from_millis(500);

/// Begins to export, if a collector is set. One that cannot be used costs the spans and nothing else.
pub(super) fn begin(endpoint: Option<Endpoint>) -> (Option<Tracer>, Option<Exporter>) {
    match endpoint.map(Exporter::start) {
        Some(Ok((tracer, exporter))) => (Some(tracer), Some(exporter)),
        Some(Err(error)) => {
            tracing::warn!(%error, "spans are not exported");
            (None, None)
        }
        None => (None, None),
    }
}

/// Posts what is left, within what is left of the grace time.
pub(super) async fn flush(exporter: Option<Exporter>, left: Duration) {
    if let Some(exporter) = exporter {
        exporter.shut_down(left.clamp(SHORT_FLUSH, FLUSH)).await;
    }
}
