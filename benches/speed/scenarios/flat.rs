//! Whatever else lies in the table: the rate of a drain and the time of a claim, beside a backlog of 10,000.
//!
//! Each case stands in a database of its own, beside another one that holds a backlog of 10,000 events of one type and
//! nothing else; the two take turns. Both are topped up before each slice and vacuumed by nobody meanwhile, because a
//! vacuum would meet now the one, now the other.

use std::time::Duration;

use super::flat_claim::ClaimSide;
use crate::bench::{Bench, count, milliseconds, rate};
use crate::database::{Outbox, State};
use crate::engine::{Engine, Setup};
use crate::plot::{Plot, Series};
use crate::raw;
use crate::report::{Goal, MILLISECONDS, RATE};

pub const ABOUT: &str =
    "drain rate and claim latency beside a backlog of 10,000: backlog, history, future, in flight, types";

/// What lies in the table.
struct Case {
    name: &'static str,
    backlog: u64,
    types: u64,
    /// Beside the backlog, in the same lane.
    beside: Option<(u64, State)>,
    /// The least share of the baseline; none for another baseline, which shows how much is noise.
    least: Option<f64>,
}

impl Case {
    const fn backlog(name: &'static str, backlog: u64) -> Self {
        let least = if backlog > BASELINE { Some(0.80) } else { None };
        Self { name, backlog, types: 1, beside: None, least }
    }

    const fn beside(name: &'static str, events: u64, state: State) -> Self {
        Self { name, backlog: BASELINE, types: 1, beside: Some((events, state)), least: Some(0.80) }
    }

    const fn types(name: &'static str, types: u64, least: f64) -> Self {
        Self { name, backlog: BASELINE, types, beside: None, least: Some(least) }
    }
}

const BASELINE: u64 = 10_000;
/// Cases of the first kind are drawn.
const BACKLOGS: [Case; 4] = [
    Case::backlog("10,000 pending again", BASELINE),
    Case::backlog("100,000 pending", 100_000),
    Case::backlog("1,000,000 pending", 1_000_000),
    Case::backlog("5,000,000 pending", 5_000_000),
];
const OTHERS: [Case; 5] = [
    Case::beside("5,000,000 completed", 5_000_000, State::Completed),
    Case::beside("1,000,000 future", 1_000_000, State::Future),
    Case::beside("10,000 in flight", 10_000, State::InFlight),
    Case::types("100 types", 100, 0.80),
    Case::types("1,000 types", 1_000, 0.50),
];
const CONCURRENCY: usize = 500;

pub async fn run(bench: &mut Bench) {
    let baseline = Side::make(bench, &Case::backlog("baseline", BASELINE)).await;
    let mut drawn = [Vec::new(), Vec::new()];
    for case in &BACKLOGS {
        measure(bench, &baseline, case, true).await;
        let backlog = count(scaled(bench, case.backlog));
        drawn[0].push((backlog, bench.report.median(&format!("{}: engine", case.name))));
        drawn[1].push((backlog, bench.report.median(&format!("{}: raw loop 500", case.name))));
    }
    for case in &OTHERS {
        measure(bench, &baseline, case, false).await;
    }
    baseline.outbox.discard().await;
    let [engine, raw] = drawn;
    let plot = Plot {
        title: "Drain rate against backlog".to_owned(),
        across: "pending events (log scale)".to_owned(),
        up: "events completed a second".to_owned(),
        logarithmic: true,
        series: vec![
            Series { name: "outboxd over HTTP, concurrency 500".to_owned(), points: engine },
            Series { name: "raw loop of its statements, batches of 500".to_owned(), points: raw },
        ],
    };
    bench.draw("backlog.svg", &plot);
}

/// A smoke test's tables are a thousandth, but for a slice that both loops can share.
fn scaled(bench: &Bench, events: u64) -> u64 {
    bench.size(events, (events / 1_000).max(2_000))
}

async fn measure(bench: &mut Bench, baseline: &Side, case: &Case, with_raw: bool) {
    let side = Side::make(bench, case).await;
    let slice = scaled(bench, BASELINE);
    let slices = bench.size(3, 1);
    let drained = slice * slices;
    let (of_case, of_base) = (format!("{}: engine", case.name), format!("{}: engine on the baseline", case.name));
    for round in 0..bench.rounds() {
        bench.say_round(round);
        let (mut took, mut beside) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..slices {
            top_up(&side, baseline, slice).await;
            // Either goes first in its turn.
            if round % 2 == 0 {
                beside += baseline.engine.drain(slice).await;
                took += side.engine.drain(slice).await;
            } else {
                took += side.engine.drain(slice).await;
                beside += baseline.engine.drain(slice).await;
            }
        }
        bench.report.add(&of_case, RATE, rate(drained, took));
        bench.report.add(&of_base, RATE, rate(drained, beside));
        if with_raw {
            let took = drain_raw(&side, slice, slices).await;
            bench.report.add(&format!("{}: raw loop 500", case.name), RATE, rate(drained, took));
        }
        measure_claims(bench, &side, baseline, case).await;
    }
    let goal = case.least.map(Goal::AtLeast);
    bench.report.ratio(&format!("{}: drain rate of the baseline's", case.name), &of_case, &of_base, goal);
    let (of_case, of_base) = claim_names(case);
    bench.report.ratio(&format!("{}: claim speed of the baseline's", case.name), &of_base, &of_case, goal);
    drop(side.engine);
    side.outbox.discard().await;
}

/// Both have the same to do, and pages that the last checkpoint has written.
async fn top_up(side: &Side, baseline: &Side, events: u64) {
    side.outbox.insert_as(events, side.types, State::Pending).await;
    baseline.outbox.insert(events).await;
    baseline.outbox.run("CHECKPOINT").await;
}

async fn drain_raw(side: &Side, slice: u64, slices: u64) -> Duration {
    let mut took = Duration::ZERO;
    for _ in 0..slices {
        side.outbox.insert_as(slice, side.types, State::Pending).await;
        side.outbox.run("CHECKPOINT").await;
        took += raw::drain_some(&side.outbox.url, 500, slice).await;
    }
    took
}

fn claim_names(case: &Case) -> (String, String) {
    (format!("{}: claim of 10", case.name), format!("{}: claim of 10 on the baseline", case.name))
}

async fn measure_claims(bench: &mut Bench, side: &Side, baseline: &Side, case: &Case) {
    let claims = bench.size(150, 4);
    let mut sides =
        [ClaimSide::begin(&side.outbox, claims, side.types).await, ClaimSide::begin(&baseline.outbox, claims, 1).await];
    for _ in 0..claims {
        for side in &mut sides {
            side.claim().await;
        }
    }
    let (of_case, of_base) = claim_names(case);
    for (side, name) in sides.into_iter().zip([of_case, of_base]) {
        let median = side.finish().await;
        bench.report.add(&name, MILLISECONDS, milliseconds(median));
    }
}

/// A filled table and the engine on it.
struct Side {
    outbox: Outbox,
    engine: Engine,
    types: u64,
}

impl Side {
    async fn make(bench: &Bench, case: &Case) -> Self {
        eprintln!(" filling: {}", case.name);
        let outbox = bench.outbox().await;
        outbox.run("ALTER TABLE outbox.event SET (autovacuum_enabled = false)").await;
        if let Some((events, state)) = case.beside {
            outbox.insert_as(scaled(bench, events), 1, state).await;
        }
        // A slice's worth comes with each topping up.
        let backlog = scaled(bench, case.backlog) - scaled(bench, BASELINE);
        let warm_up = case.types.max(500);
        outbox.insert_as(backlog + warm_up, case.types, State::Pending).await;
        outbox.settle_down().await;
        let engine = Engine::start(Setup::discarding(&outbox.url, CONCURRENCY)).await;
        engine.drain(warm_up).await;
        Self { outbox, engine, types: case.types }
    }
}
