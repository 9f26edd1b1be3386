//! housekeeping.
