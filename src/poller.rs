//! poller.
