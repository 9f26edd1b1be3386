//! What is measured, in the order in which it is done.

mod cost;
mod drain;
mod enqueue;
mod flat;
mod flat_claim;
mod http;
mod idle;
mod latency;
mod memory;
mod peers;
mod pinned;
mod scale;
mod sqlite;
mod stale;

use futures_util::future::BoxFuture;

use crate::bench::Bench;

/// One thing that is measured.
pub struct Scenario {
    pub name: &'static str,
    /// What the figures are of, in one line.
    pub about: &'static str,
    pub run: for<'b> fn(&'b mut Bench) -> BoxFuture<'b, ()>,
}

/// Each module has an `ABOUT` and a `run`.
macro_rules! list {
    ($($name:ident),+ $(,)?) => {
        &[$(Scenario {
            name: stringify!($name),
            about: $name::ABOUT,
            run: |bench| Box::pin($name::run(bench)),
        }),+]
    };
}

/// All of them. A new one is one more `mod` above and one more name here.
pub const ALL: &[Scenario] =
    list![drain, peers, http, enqueue, latency, cost, idle, memory, flat, pinned, stale, scale, sqlite];
