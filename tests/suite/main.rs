//! One integration binary: every test that needs a database, a receiver or the program itself.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests fail by panicking and their names are their documentation")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test that ends is the owner of what it spawned, and reads the wall clock"
)]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a test's own small numbers"
)]

mod adopted;
mod api;
mod architecture;
mod cli;
mod config;
mod config_outbox;
mod documents;
mod engine;
mod example;
mod inspect;
mod monitoring;
mod page;
mod plans;
mod pooler;
mod store;
mod support;
mod webhook;
mod webhook_tls;
