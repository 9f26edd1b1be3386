//! A snapshot that somebody holds open while events churn: nothing that dies meanwhile can be vacuumed.

use std::time::{Duration, Instant};

use sqlx::PgConnection;

use crate::bench::{Bench, count, rate};
use crate::database::{Outbox, run as run_sql};
use crate::engine::{Engine, Setup};
use crate::plot::{Plot, Series};
use crate::raw;
use crate::report::{Goal, RATE, RATIO};

pub const ABOUT: &str = "300,000 events in and out while a REPEATABLE READ transaction holds its snapshot, and without";

const CONCURRENCY: usize = 500;
const SLICES: u32 = 12;
/// How long the loop without scan positions is looked at: it becomes ever slower.
const LOOKED_AT: Duration = Duration::from_secs(25);
const FREE: &str = "engine, nothing pinned";
const PINNED: &str = "engine, snapshot pinned";
const WITHOUT: &str = "raw loop without scan positions, snapshot pinned";

pub async fn run(bench: &mut Bench) {
    let slice = bench.size(25_000, 500);
    let mut curves = Curves::default();
    for round in 0..bench.rounds() {
        bench.say_round(round);
        let churned = churn(bench, slice).await;
        bench.report.add(FREE, RATE, rate(slice * u64::from(SLICES), churned.free.iter().sum()));
        bench.report.add(PINNED, RATE, rate(slice * u64::from(SLICES), churned.pinned.iter().sum()));
        let share = |from: usize| {
            let [free, pinned] = [&churned.free, &churned.pinned].map(|side| side[from..].iter().sum::<Duration>());
            free.as_secs_f64() / pinned.as_secs_f64()
        };
        bench.report.judge("pinned of free, all of it", RATIO, share(0), Goal::AtLeast(0.90));
        bench.report.judge("pinned of free, the last quarter", RATIO, share(9), Goal::AtLeast(0.90));
        curves.add(&churned, slice);
    }
    let without = churn_without_positions(bench, slice).await;
    let last = without.last().copied().unwrap_or_default();
    bench.report.add(&format!("{WITHOUT}, first slice"), RATE, rate(slice, without[0]));
    bench.report.add(&format!("{WITHOUT}, slice {} of {SLICES}", without.len()), RATE, rate(slice, last));
    bench.draw("pinned.svg", &curves.plot(&without, slice));
}

/// How long each slice took to be drained.
#[derive(Default)]
struct Churned {
    free: Vec<Duration>,
    pinned: Vec<Duration>,
}

/// Both sides, slice by slice in turn, each in a database of its own: a snapshot holds back only its own database.
async fn churn(bench: &Bench, slice: u64) -> Churned {
    let (free, pinned) = (Side::make(bench).await, Side::make(bench).await);
    let snapshot = pin(&pinned.outbox).await;
    let mut churned = Churned::default();
    for number in 0..SLICES {
        if number % 2 == 0 {
            churned.free.push(free.slice(slice).await);
            churned.pinned.push(pinned.slice(slice).await);
        } else {
            churned.pinned.push(pinned.slice(slice).await);
            churned.free.push(free.slice(slice).await);
        }
    }
    drop(snapshot);
    for side in [free, pinned] {
        drop(side.engine);
        side.outbox.discard().await;
    }
    churned
}

/// What the scan position is for: the same statements from the front each time.
async fn churn_without_positions(bench: &Bench, slice: u64) -> Vec<Duration> {
    eprintln!(" without scan positions");
    let outbox = bench.outbox().await;
    let snapshot = pin(&outbox).await;
    let began = Instant::now();
    let mut took = Vec::new();
    while took.len() < SLICES as usize && began.elapsed() < LOOKED_AT {
        outbox.insert(slice).await;
        took.push(raw::drain_with(&outbox.url, 500, slice, false).await);
    }
    drop(snapshot);
    outbox.discard().await;
    took
}

/// Holds a snapshot until the connection is dropped.
async fn pin(outbox: &Outbox) -> PgConnection {
    let mut connection = outbox.open().await;
    run_sql(&mut connection, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox.event").await;
    connection
}

struct Side {
    outbox: Outbox,
    engine: Engine,
}

impl Side {
    async fn make(bench: &Bench) -> Self {
        let outbox = bench.outbox().await;
        let engine = Engine::start(Setup::discarding(&outbox.url, CONCURRENCY)).await;
        Self { outbox, engine }
    }

    /// Puts a slice in and times how long it takes to come out.
    async fn slice(&self, events: u64) -> Duration {
        self.outbox.insert(events).await;
        self.engine.drain(events).await
    }
}

/// Rates over the churn, one list a round.
#[derive(Default)]
struct Curves {
    free: Vec<Vec<f64>>,
    pinned: Vec<Vec<f64>>,
}

impl Curves {
    fn add(&mut self, churned: &Churned, slice: u64) {
        let rates = |took: &[Duration]| took.iter().map(|took| rate(slice, *took)).collect();
        self.free.push(rates(&churned.free));
        self.pinned.push(rates(&churned.pinned));
    }

    fn plot(&self, without: &[Duration], slice: u64) -> Plot {
        let across = |index: usize| count(slice * (index as u64 + 1));
        let middle = |rounds: &[Vec<f64>]| {
            let at = |index: usize| crate::report::median(&rounds.iter().map(|round| round[index]).collect::<Vec<_>>());
            (0..SLICES as usize).map(|index| (across(index), at(index))).collect()
        };
        let without = without.iter().enumerate().map(|(index, took)| (across(index), rate(slice, *took))).collect();
        Plot {
            title: "Drain rate while a transaction holds its snapshot".to_owned(),
            across: "events inserted and drained since the snapshot was taken".to_owned(),
            up: "events completed a second".to_owned(),
            logarithmic: false,
            series: vec![
                Series { name: "nothing pinned".to_owned(), points: middle(&self.free) },
                Series { name: "snapshot pinned".to_owned(), points: middle(&self.pinned) },
                Series { name: "pinned, raw loop without scan positions".to_owned(), points: without },
            ],
        }
    }
}
