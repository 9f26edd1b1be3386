//! How much one run may do: how many events, for how long, and how much time must be left to begin another one.

use std::time::{Duration, Instant};

/// What a handler's timeout is exceeded by in the judgement whether it still fits: time to settle.
pub const SETTLE_MARGIN: Duration = Duration::from_secs(1);

/// How long after its start a run still counts as beginning: what fitted at the start fits until then, or the smallest
/// budget that would do would never do. Half of the settle margin is left.
const BEGINNING: Duration = Duration::from_millis(500);

/// The longest that a run may take, whatever it is allowed: instants of further away cannot be reckoned with.
const LONGEST_RUNTIME: Duration = Duration::from_hours(366 * 24);

/// The limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Events that the run may claim, 1–10,000.
    pub batch_size: u32,
    /// When the run must have ended; a year at most.
    pub max_runtime: Duration,
    /// Time that must be left for another claim, beside what its handler needs.
    pub min_remaining: Duration,
}

impl Budget {
    /// Events that a run may claim at most.
    pub const MAX_BATCH_SIZE: u32 = 10_000;

    /// Time that must be left before an event is claimed whose handler may take `timeout`.
    #[must_use]
    pub fn needed(&self, timeout: Duration) -> Duration {
        timeout.saturating_add(SETTLE_MARGIN).max(self.min_remaining)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self { batch_size: 100, max_runtime: Duration::from_secs(50), min_remaining: Duration::ZERO }
    }
}

/// A budget that has begun to run down, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Countdown {
    budget: Budget,
    started: Instant,
}

impl Countdown {
    /// Starts now.
    #[must_use]
    pub fn start(budget: Budget) -> Self {
        let budget = Budget { max_runtime: budget.max_runtime.min(LONGEST_RUNTIME), ..budget };
        Self { budget, started: Instant::now() }
    }

    /// How long the run may take altogether.
    #[must_use]
    pub fn max_runtime(&self) -> Duration {
        self.budget.max_runtime
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Time until the run must have ended.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.budget.max_runtime.saturating_sub(self.elapsed())
    }

    /// Whether an event may be claimed now whose handler may take `timeout`.
    #[must_use]
    pub fn fits(&self, timeout: Duration) -> bool {
        let is_beginning = self.elapsed() <= BEGINNING;
        self.remaining() >= self.budget.needed(timeout) || (is_beginning && self.fitted_at_start(timeout))
    }

    /// Whether such an event could have been claimed at the start.
    #[must_use]
    pub fn fitted_at_start(&self, timeout: Duration) -> bool {
        self.budget.max_runtime >= self.budget.needed(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_fits_while_its_timeout_and_a_second_are_left() {
        let budget = Budget { max_runtime: Duration::from_secs(30), ..Budget::default() };
        let countdown = Countdown::start(budget);
        assert!(countdown.fits(Duration::from_secs(28)));
        assert!(!countdown.fits(Duration::from_secs(30)));
        assert!(countdown.fitted_at_start(Duration::from_secs(29)));
    }

    #[test]
    fn the_smallest_budget_for_a_handler_fits_it_at_the_beginning() {
        let timeout = Duration::from_secs(29);
        let budget = Budget { max_runtime: Duration::from_secs(30), ..Budget::default() };
        let begun = |ago| Countdown { budget, started: Instant::now().checked_sub(ago).unwrap() };
        assert!(begun(Duration::from_millis(100)).fits(timeout));
        assert!(!begun(Duration::from_millis(600)).fits(timeout));
    }

    #[test]
    fn min_remaining_outweighs_a_short_timeout() {
        let budget = Budget { min_remaining: Duration::from_secs(10), ..Budget::default() };
        assert_eq!(budget.needed(Duration::from_secs(2)), Duration::from_secs(10));
        assert_eq!(budget.needed(Duration::from_secs(20)), Duration::from_secs(21));
    }
}
