//! From what a handler said to what is written: [`decide`] is the one place where it is settled whether an event
//! completes, is tried again, waits, is skipped or given up. It is pure: no clock, no database, no chance of its own.

use std::time::Duration;

use crate::lease::{ClaimedEvent, Lease};
use crate::retry::{MAX_DELAY, MIN_DEFER, RetryPolicy};

/// Characters of an error text that are kept.
pub const MAX_ERROR_CHARS: usize = 500;
/// Characters of a skip's reason that are kept.
pub const MAX_REASON_CHARS: usize = 200;

/// What a handler says of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Delivered.
    Complete,
    /// Failed for now: spends an attempt.
    Retry {
        /// What went wrong; must hold no secret.
        error: String,
        /// The receiver's wish: the next attempt starts no earlier.
        retry_after: Option<Duration>,
    },
    /// No answer in time; the receiver may still be working. As a retry, but not before the lease has ended.
    TimedOut {
        /// What was waited for.
        error: String,
    },
    /// Not now: spends no attempt.
    Defer {
        /// How long; the back-off delay when the receiver does not say.
        delay: Option<Duration>,
        /// Why.
        reason: String,
    },
    /// Not to be delivered at all.
    Skip {
        /// Why.
        reason: String,
    },
    /// A permanent failure: no further attempt can help.
    DeadLetter {
        /// What went wrong; must hold no secret.
        error: String,
    },
    /// The receiver has taken the event and will settle it itself; until then the lease is kept.
    Accepted,
    /// The handler has settled the event inside its own database transaction.
    Settled,
}

impl Outcome {
    /// A failure that is tried again after the route's back-off.
    #[must_use]
    pub fn retry(error: impl Into<String>) -> Self {
        Self::Retry { error: error.into(), retry_after: None }
    }

    /// Why the event was not completed.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Retry { error, .. } | Self::TimedOut { error } | Self::DeadLetter { error } => Some(error),
            Self::Defer { reason, .. } | Self::Skip { reason } => Some(reason),
            Self::Complete | Self::Accepted | Self::Settled => None,
        }
    }

    /// The word for it in the attempt log and on the wire.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Complete | Self::Settled => "complete",
            Self::Retry { .. } => "retry",
            Self::TimedOut { .. } => "timed_out",
            Self::Defer { .. } => "defer",
            Self::Skip { .. } => "skip",
            Self::DeadLetter { .. } => "dead_letter",
            Self::Accepted => "accepted",
        }
    }
}

/// What of a route bears on the decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Delays between attempts.
    pub retry: RetryPolicy,
    /// How long an event may be deferred without a break before it is given up.
    pub max_defer_age: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { retry: RetryPolicy::default(), max_defer_age: Duration::from_secs(7 * 24 * 60 * 60) }
    }
}

/// The change of an event that a settlement writes, under the lease's guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// processing → completed.
    Complete,
    /// processing → pending after a failure: attempts + 1.
    Retry {
        /// From now, by the database's clock.
        delay: Duration,
        /// Whether it also waits for the end of the lease.
        after_lease: bool,
        /// Becomes `last_error`.
        error: String,
    },
    /// processing → pending without spending an attempt.
    Defer {
        /// From now, by the database's clock; 1 s to 24 h.
        delay: Duration,
        /// Becomes `last_error`.
        reason: String,
    },
    /// processing → skipped.
    Skip {
        /// Becomes `last_error`.
        reason: String,
    },
    /// processing → `dead_letter`.
    DeadLetter {
        /// False when the event was only ever deferred for too long.
        spends_attempt: bool,
        /// Becomes `last_error`.
        error: String,
    },
    /// processing → pending, for a claim whose handler was never started.
    Release,
}

/// One settlement: a change, the lease that allows it, and the attempt's line for the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The guard.
    pub lease: Lease,
    /// What is written.
    pub change: Change,
    /// The log's line, written in the same statement; `None` keeps none.
    pub attempt: Option<AttemptLine>,
}

/// What the attempt log keeps of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptLine {
    /// 1 on the first attempt since the event was enqueued or requeued.
    pub number: i32,
    /// How long the handler took, by the monotonic clock.
    pub duration: Duration,
    /// The outcome's word.
    pub outcome: &'static str,
    /// The receiver's HTTP status, if it answered.
    pub status_code: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// The beginning of the receiver's answer.
    pub response: Option<String>,
}

/// What follows from an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Write this.
    Settle(Change),
    /// Write nothing and keep the lease: the receiver settles.
    KeepLease,
    /// Nothing is left to write: the handler did.
    AlreadySettled,
}

/// Decides what becomes of a claimed event; `random` in [0, 1) chooses the jitter of a back-off.
///
/// An attempt is spent by a failure, a time-out and a permanent failure; the event is given up when the attempt was its
/// last one, or when it has been deferred without a break for longer than the policy allows.
#[must_use]
pub fn decide(outcome: &Outcome, event: &ClaimedEvent, policy: &Policy, random: f64) -> Decision {
    let failed = event.attempts.saturating_add(1);
    let back_off = || policy.retry.delay(u32::try_from(failed).unwrap_or(1), random);
    let fail = |delay: Duration, after_lease: bool, error: &str| {
        let error = stored_text(error, MAX_ERROR_CHARS);
        if failed >= event.max_attempts {
            Change::DeadLetter { spends_attempt: true, error }
        } else {
            Change::Retry { delay, after_lease, error }
        }
    };
    let change = match outcome {
        Outcome::Complete => Change::Complete,
        Outcome::Retry { error, retry_after } => {
            let floor = retry_after.map_or(Duration::ZERO, |wish| wish.clamp(MIN_DEFER, MAX_DELAY));
            fail(back_off().max(floor), false, error)
        }
        Outcome::TimedOut { error } => fail(back_off(), true, error),
        Outcome::Defer { delay, reason } => {
            let reason = stored_text(reason, MAX_ERROR_CHARS);
            if event.deferred_for.is_some_and(|age| age > policy.max_defer_age) {
                let error = stored_text(&format!("deferred for too long: {reason}"), MAX_ERROR_CHARS);
                Change::DeadLetter { spends_attempt: false, error }
            } else {
                Change::Defer { delay: delay.unwrap_or_else(back_off).clamp(MIN_DEFER, MAX_DELAY), reason }
            }
        }
        Outcome::Skip { reason } => Change::Skip { reason: stored_text(reason, MAX_REASON_CHARS) },
        Outcome::DeadLetter { error } => {
            Change::DeadLetter { spends_attempt: true, error: stored_text(error, MAX_ERROR_CHARS) }
        }
        Outcome::Accepted => return Decision::KeepLease,
        Outcome::Settled => return Decision::AlreadySettled,
    };
    Decision::Settle(change)
}

/// Text as a database can store it: no NUL, at most `limit` characters.
#[must_use]
pub fn stored_text(text: &str, limit: usize) -> String {
    text.chars().map(|c| if c == '\0' { '\u{FFFD}' } else { c }).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claimed(attempts: i32, max_attempts: i32, deferred_for: Option<Duration>) -> ClaimedEvent {
        ClaimedEvent { attempts, max_attempts, deferred_for, ..ClaimedEvent::example() }
    }

    fn settled(outcome: &Outcome, event: &ClaimedEvent) -> Change {
        match decide(outcome, event, &Policy::default(), 0.0) {
            Decision::Settle(change) => change,
            other => panic!("{other:?}"),
        }
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        let seconds = prop::option::of((0_u64..10_000_000).prop_map(Duration::from_secs));
        prop_oneof![
            Just(Outcome::Complete),
            (".{0,600}", seconds.clone()).prop_map(|(error, retry_after)| Outcome::Retry { error, retry_after }),
            ".{0,600}".prop_map(|error| Outcome::TimedOut { error }),
            (".{0,600}", seconds).prop_map(|(reason, delay)| Outcome::Defer { delay, reason }),
            ".{0,600}".prop_map(|reason| Outcome::Skip { reason }),
            ".{0,600}".prop_map(|error| Outcome::DeadLetter { error }),
        ]
    }

    #[test]
    fn the_last_failure_is_a_dead_letter() {
        let outcome = Outcome::retry("boom");
        assert!(matches!(settled(&outcome, &claimed(8, 10, None)), Change::Retry { .. }));
        assert!(matches!(settled(&outcome, &claimed(9, 10, None)), Change::DeadLetter { spends_attempt: true, .. }));
    }

    #[test]
    fn retry_after_is_a_floor_and_not_a_ceiling() {
        let wish = |seconds| Outcome::Retry { error: String::new(), retry_after: Some(Duration::from_secs(seconds)) };
        let delay = |outcome| match settled(&outcome, &claimed(3, 10, None)) {
            Change::Retry { delay, .. } => delay.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!((delay(wish(1)), delay(wish(60)), delay(wish(1_000_000))), (16, 60, 86_400));
    }

    #[test]
    fn an_endless_chain_of_deferrals_ends_without_spending_an_attempt() {
        let outcome = Outcome::Defer { delay: None, reason: "busy".to_owned() };
        let week = Duration::from_secs(7 * 24 * 60 * 60);
        assert!(matches!(settled(&outcome, &claimed(0, 10, Some(week))), Change::Defer { .. }));
        assert!(matches!(
            settled(&outcome, &claimed(0, 10, Some(week * 2))),
            Change::DeadLetter { spends_attempt: false, .. }
        ));
    }

    proptest! {
        #[test]
        fn every_decision_keeps_the_limits(
            outcome in outcomes(), attempts in 0..100_i32, max_attempts in 1..=100_i32, random in 0.0..1.0,
        ) {
            let event = claimed(attempts, max_attempts, None);
            let Decision::Settle(change) = decide(&outcome, &event, &Policy::default(), random) else {
                return Err(TestCaseError::fail("these outcomes settle"));
            };
            match change {
                Change::Retry { delay, error, .. } => {
                    prop_assert!(attempts + 1 < max_attempts);
                    prop_assert!((Duration::from_secs(1)..=MAX_DELAY).contains(&delay));
                    prop_assert!(error.chars().count() <= MAX_ERROR_CHARS && !error.contains('\0'));
                }
                Change::Defer { delay, .. } => prop_assert!((MIN_DEFER..=MAX_DELAY).contains(&delay)),
                Change::Skip { reason } => prop_assert!(reason.chars().count() <= MAX_REASON_CHARS),
                Change::DeadLetter { spends_attempt, error } => {
                    prop_assert!(spends_attempt);
                    prop_assert!(error.chars().count() <= MAX_ERROR_CHARS);
                }
                Change::Complete => prop_assert_eq!(&outcome, &Outcome::Complete),
                Change::Release => prop_assert!(false, "no outcome releases"),
            }
        }
    }
}
