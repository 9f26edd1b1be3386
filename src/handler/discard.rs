//! A handler that completes every event without doing anything: for benchmarks, never for work.

use async_trait::async_trait;

use super::{Delivery, Handler};
use crate::outcome::Outcome;

/// Completes every event at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

#[async_trait]
impl Handler for Discard {
    async fn handle(&self, _delivery: &Delivery) -> Outcome {
        Outcome::Complete
    }
}
