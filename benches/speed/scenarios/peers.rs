//! The engine beside other programs at their best settings: what each reaches, and what it costs the database.

use std::time::Duration;

use crate::bench::{Bench, rate};
use crate::cost::Reading;
use crate::engine::{Engine, Setup};
use crate::peer::Peer;
use crate::report::{Goal, RATE};

pub const ABOUT: &str = "no-op events beside graphile-worker and graphile_worker at their best settings (with --peers)";

const CONCURRENCIES: [usize; 2] = [500, 1_000];

pub async fn run(bench: &mut Bench) {
    if !bench.peers {
        bench.report.note("Not measured: --peers was not given.");
        return;
    }
    let peers = tokio::task::spawn_blocking(Peer::install_all).await.expect("the peers are installed");
    let jobs = bench.size(100_000, 2_000);
    for round in 0..bench.rounds() {
        bench.say_round(round);
        for concurrency in CONCURRENCIES {
            drain(bench, concurrency, jobs).await;
        }
        for peer in &peers {
            drain_peer(bench, peer, jobs).await;
        }
    }
    let [ours, theirs] = [CONCURRENCIES.map(of_engine), [peers[0].name.to_owned(), peers[1].name.to_owned()]];
    let ours = bench.report.best(&[&ours[0], &ours[1]]).to_owned();
    let theirs = bench.report.best(&[&theirs[0], &theirs[1]]).to_owned();
    bench.report.ratio("engine at its best of the better peer", &ours, &theirs, Some(Goal::AtLeast(1.4)));
    bench.report.note("The peers delete what is done; the engine keeps it.");
}

fn of_engine(concurrency: usize) -> String {
    format!("engine, concurrency {concurrency}")
}

async fn drain(bench: &mut Bench, concurrency: usize, jobs: u64) {
    let outbox = bench.outbox().await;
    let engine = Engine::start(Setup::discarding(&outbox.url, concurrency)).await;
    outbox.refill(jobs).await;
    let before = Reading::take(bench.admin()).await;
    let took = engine.drain(jobs).await;
    add(bench, &of_engine(concurrency), jobs, took, &before).await;
    drop(engine);
    outbox.discard().await;
}

async fn drain_peer(bench: &mut Bench, peer: &Peer, jobs: u64) {
    let outbox = bench.outbox().await;
    peer.fill(&outbox, jobs).await;
    let before = Reading::take(bench.admin()).await;
    let took = peer.drain(&outbox, jobs).await;
    add(bench, peer.name, jobs, took, &before).await;
    outbox.discard().await;
}

async fn add(bench: &mut Bench, name: &str, jobs: u64, took: Duration, before: &Reading) {
    let cost = before.cost_since(bench.admin(), jobs).await;
    bench.report.add(name, RATE, rate(jobs, took));
    cost.add_to(&mut bench.report, name, None);
}
