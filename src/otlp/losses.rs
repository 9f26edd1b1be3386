//! How many spans were lost, and when the log says so.

use std::time::{Duration, Instant};

/// How often the log says it at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Spans that were lost since the log last said so.
#[derive(Debug, Default)]
pub(super) struct Losses {
    count: u64,
    told: Option<Instant>,
}

impl Losses {
    /// Counts so many more; how many there are to be told of, when it is time to.
    pub(super) fn add(&mut self, lost: u64, now: Instant) -> Option<u64> {
        self.count += lost;
        let is_time = self.told.is_none_or(|told| now.duration_since(told) >= TELL_EVERY);
        if self.count == 0 || !is_time {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_once_a_minute_and_none_is_forgotten() {
        let (mut losses, start) = (Losses::default(), Instant::now());
        let mut add = |seconds, lost| losses.add(lost, start + Duration::from_secs(seconds));
        assert_eq!((add(0, 0), add(1, 3), add(2, 4), add(60, 0)), (None, Some(3), None, None));
        assert_eq!((add(61, 5), add(62, 0), add(200, 0)), (Some(9), None, None));
    }
}
