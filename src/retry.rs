//! When a failed attempt is tried again: the delay after the n-th failure, and how long a whole series lasts.
//!
//! Delays never shrink: jitter only adds, and a receiver's `Retry-After` is a floor, not a replacement. All arithmetic
//! saturates, whatever the attempt number.

use std::time::Duration;

/// The longest delay of any kind: retries, deferrals and `Retry-After` are cut to it.
pub const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest deferral, so that a receiver that says "later" cannot cause a hot loop.
pub const MIN_DEFER: Duration = Duration::from_secs(1);

/// The delays that the Standard Webhooks specification proposes.
const STANDARD_WEBHOOKS_SECONDS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// How long to wait after each failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum RetryPolicy {
    /// `min(max, base · factor^n)` after the n-th failed attempt.
    Exponential {
        /// The unit that the factor multiplies.
        base: Duration,
        /// Growth per attempt, at least 1.
        factor: f64,
        /// The longest delay before jitter.
        max: Duration,
        /// The largest share of the delay that is added at random, 0 to 1.
        jitter: f64,
    },
    /// One delay per failed attempt; the last one repeats.
    Schedule {
        /// At least one delay.
        delays: Vec<Duration>,
        /// The largest share of the delay that is added at random, 0 to 1.
        jitter: f64,
    },
}

impl Default for RetryPolicy {
    /// `min(1 h, 1 s · 2^n)` plus up to a tenth.
    fn default() -> Self {
        Self::Exponential { base: Duration::from_secs(1), factor: 2.0, max: Duration::from_secs(3_600), jitter: 0.1 }
    }
}

impl RetryPolicy {
    /// The schedule of the Standard Webhooks specification, with up to a tenth added.
    #[must_use]
    pub fn standard_webhooks() -> Self {
        Self::Schedule { delays: STANDARD_WEBHOOKS_SECONDS.map(Duration::from_secs).to_vec(), jitter: 0.1 }
    }

    /// The delay after `failed_attempts` failures (1 after the first), where `random` in [0, 1) chooses the jitter.
    #[must_use]
    pub fn delay(&self, failed_attempts: u32, random: f64) -> Duration {
        let (delay, jitter) = match self {
            Self::Exponential { base, factor, max, jitter } => {
                let exponent = i32::try_from(failed_attempts).unwrap_or(i32::MAX);
                let seconds = base.as_secs_f64() * factor.powi(exponent);
                (seconds.min(max.as_secs_f64()), *jitter)
            }
            Self::Schedule { delays, jitter } => {
                let step = (failed_attempts.max(1) as usize - 1).min(delays.len().saturating_sub(1));
                (delays.get(step).map_or(0.0, Duration::as_secs_f64), *jitter)
            }
        };
        let seconds = delay * (1.0 + jitter.clamp(0.0, 1.0) * random.clamp(0.0, 1.0));
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_DELAY).min(MAX_DELAY)
    }

    /// The least time from the first attempt to the last when every one of `max_attempts` fails at once.
    #[must_use]
    pub fn horizon(&self, max_attempts: u32) -> Duration {
        (1..max_attempts).fold(Duration::ZERO, |sum, failed| sum.saturating_add(self.delay(failed, 0.0)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_default_doubles_from_two_seconds_to_one_hour() {
        let policy = RetryPolicy::default();
        let seconds: Vec<u64> = (1..=13).map(|n| policy.delay(n, 0.0).as_secs()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
        assert_eq!(policy.horizon(10), Duration::from_secs(1022));
    }

    #[test]
    fn a_schedule_repeats_its_last_delay() {
        let policy = RetryPolicy::standard_webhooks();
        assert_eq!(policy.delay(1, 0.0), Duration::from_secs(5));
        assert_eq!(policy.delay(9, 0.0), Duration::from_secs(86_400));
        assert_eq!(policy.delay(10, 0.0), Duration::from_secs(86_400));
    }

    proptest! {
        #[test]
        fn no_attempt_number_overflows_or_gives_a_zero_or_shrinking_delay(n in 1_u32..u32::MAX, random in 0.0..1.0) {
            let policy = RetryPolicy::default();
            let (plain, jittered) = (policy.delay(n, 0.0), policy.delay(n, random));
            prop_assert!(plain >= Duration::from_secs(2));
            prop_assert!(jittered >= plain && jittered <= plain.mul_f64(1.100_001));
            prop_assert!(policy.delay(n + 1, 0.0) >= plain);
        }
    }
}
