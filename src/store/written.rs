//! What a settlement's change writes, the same for every table.

use super::micros;
use crate::event::Status;
use crate::outcome::Change;

/// What a change writes into its event's row, whatever the table.
pub(in crate::store) struct Written<'a> {
    /// The new status.
    pub(in crate::store) status: Status,
    /// Attempts that it spends.
    pub(in crate::store) spent: i32,
    /// Microseconds until it is due; `None` keeps the due time.
    pub(in crate::store) delay: Option<i64>,
    /// Whether it also waits for the end of the lease.
    pub(in crate::store) after_lease: bool,
    /// `None` keeps the last one.
    pub(in crate::store) error: Option<&'a String>,
}

impl<'a> Written<'a> {
    pub(in crate::store) fn of(change: &'a Change) -> Self {
        let (status, spent, delay, after_lease, error) = match change {
            Change::Complete => (Status::Completed, 0, None, false, None),
            Change::Retry { delay, after_lease, error } => {
                (Status::Pending, 1, Some(*delay), *after_lease, Some(error))
            }
            Change::Defer { delay, reason } => (Status::Pending, 0, Some(*delay), false, Some(reason)),
            Change::Skip { reason } => (Status::Skipped, 0, None, false, Some(reason)),
            Change::DeadLetter { spends_attempt, error } => {
                (Status::DeadLetter, i32::from(*spends_attempt), None, false, Some(error))
            }
            Change::Release => (Status::Pending, 0, None, false, None),
        };
        Self { status, spent, delay: delay.map(micros), after_lease, error }
    }
}
