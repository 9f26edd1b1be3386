//! outboxd: a transactional outbox as a service, and the same engine as a library.
//!
//! An application writes an *event* in the same database transaction as its business rows. outboxd claims the event,
//! hands it to a *handler*, and retries, defers, skips or dead-letters it until it has reached exactly one terminal
//! state. Delivery is at-least-once and fenced: a worker that lost its lease changes nothing.
//!
//! The crate is built in floors; imports point down only (`tests/suite/architecture` keeps it so).
//!
//! | floor | modules | what |
//! | --- | --- | --- |
//! | 5 | [`cli`], [`config`], [`telemetry`] | putting the parts together |
//! | 4 | [`api`], [`poller`], [`housekeeping`], [`sampler`] | what sets the work going |
//! | 3 | [`processor`] | the workflow: one bounded run, or one event by its id |
//! | 2 | [`store`], [`handler`], [`otlp`] | the edges: the database, the receivers, the collector of spans |
//! | 1 | [`event`], [`lease`], [`outcome`], [`retry`], [`budget`], [`run`], [`retention`], [`json`], [`metrics`], [`span`], [`timestamp`] | words and rules |
//!
//! A library user needs [`store::connect`], a [`handler::Registry`] with his own [`handler::Handler`]s and a
//! [`processor::Processor`]; `examples/custom_handler.rs` shows all three.

pub mod api;
pub mod budget;
pub mod cli;
pub mod config;
pub mod event;
pub mod handler;
pub mod housekeeping;
pub mod json;
pub mod lease;
pub mod metrics;
pub mod otlp;
pub mod outcome;
pub mod poller;
pub mod processor;
pub mod retention;
pub mod retry;
pub mod run;
pub mod sampler;
pub mod span;
pub mod store;
pub mod telemetry;
pub mod timestamp;

/// The database driver, in the version whose connections [`store::postgres::enqueue_in`] and
/// [`store::postgres::complete_in`] take.
pub use sqlx;
