//! What became of attempts, minute by minute: small sums that a chart is drawn from.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::timestamp::Timestamp;

/// How many attempts ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct MinuteCounts {
    /// Events delivered.
    pub completed: u64,
    /// Attempts that failed and will be repeated, leases that expired among them.
    pub retried: u64,
    /// Events put off without spending an attempt.
    pub deferred: u64,
    /// Events skipped by their receiver.
    pub skipped: u64,
    /// Events given up.
    pub dead_lettered: u64,
}

impl MinuteCounts {
    /// Whether nothing has been counted.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// In the order of the columns.
    pub(super) fn numbers(self) -> [i64; 5] {
        [self.completed, self.retried, self.deferred, self.skipped, self.dead_lettered]
            .map(|count| i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// From the columns in their order.
    pub(super) fn from_numbers(numbers: [i64; 5]) -> Self {
        let [completed, retried, deferred, skipped, dead_lettered] =
            numbers.map(|count| u64::try_from(count).unwrap_or(0));
        Self { completed, retried, deferred, skipped, dead_lettered }
    }
}

/// One minute of one outbox, of all instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Minute {
    /// Its beginning, by the database's clock.
    #[schema(value_type = String, format = DateTime)]
    pub minute: Timestamp,
    /// What ended in it.
    #[serde(flatten)]
    pub counts: MinuteCounts,
}
