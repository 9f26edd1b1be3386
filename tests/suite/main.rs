//! One integration binary: every test that needs a database, a receiver or the program itself.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests fail by panicking and their names are their documentation")]

mod api;
mod architecture;
mod cli;
mod config;
mod documents;
mod engine;
mod example;
mod plans;
mod pooler;
mod store;
mod support;
mod webhook;
mod webhook_tls;
