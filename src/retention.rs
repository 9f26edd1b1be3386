//! Retention: how long events are kept that are finished.

use std::time::Duration;

/// How long finished events are kept. Dead letters are never deleted by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Completed ones.
    pub completed: Duration,
    /// Skipped ones.
    pub skipped: Duration,
}

impl Default for Retention {
    /// 7 and 30 days.
    fn default() -> Self {
        let day = Duration::from_hours(24);
        Self { completed: day * 7, skipped: day * 30 }
    }
}
