//! A handler that writes each event to the log and completes it: for development. Payloads stay out of the log.

use async_trait::async_trait;

use super::{Delivery, Handler};
use crate::outcome::Outcome;

/// Logs every event and completes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Log;

#[async_trait]
impl Handler for Log {
    async fn handle(&self, delivery: &Delivery) -> Outcome {
        let event = &delivery.event;
        tracing::info!(
            event_id = %event.lease.event_id,
            event_type = %event.event_type,
            subject = event.subject.as_deref(),
            attempt = event.attempt_number(),
            payload_bytes = event.payload_bytes,
            "an event arrived at the log handler"
        );
        Outcome::Complete
    }
}
