//! Adds no-op jobs to graphile_worker, or drains them, and prints one line of JSON.
//!
//! `outboxd-bench-graphile-worker fill|drain DATABASE_URL JOBS`. A job's payload is 300 bytes of JSON, as an event's is
//! on the other side. The settings are those of the peer's own benchmark, which also drained fastest where this was tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use graphile_worker::{Database, IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler};
use graphile_worker::{WorkerContext, WorkerOptions, WorkerUtils};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgPool;

const SCHEMA: &str = "graphile_worker";
const JOBS_A_CALL: u64 = 10_000;
const CONNECTIONS: u32 = 20;

static DONE: AtomicU64 = AtomicU64::new(0);

#[derive(Serialize, Deserialize)]
struct Noop {
    n: String,
    text: String,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        DONE.fetch_add(1, Ordering::Relaxed);
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, url, jobs] = arguments.as_slice() else { panic!("usage: fill|drain DATABASE_URL JOBS") };
    let jobs = jobs.parse().expect("a number of jobs");
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(CONNECTIONS).connect(url);
    let pool = pool.await.expect("Postgres answers");
    let result = match command.as_str() {
        "fill" => fill(pool, jobs).await,
        "drain" => drain(pool, jobs).await,
        other => panic!("no command is named {other}"),
    };
    println!("{result}");
}

async fn fill(pool: PgPool, jobs: u64) -> Value {
    let utils = WorkerUtils::new(Database::from(pool), SCHEMA);
    utils.migrate().await.expect("the peer's schema is made");
    let text = "x".repeat(274);
    let mut added = 0;
    while added < jobs {
        let until = jobs.min(added + JOBS_A_CALL);
        let specs: Vec<RawJobSpec> = (added..until)
            .map(|n| RawJobSpec {
                identifier: Noop::IDENTIFIER.to_owned(),
                payload: json!({ "n": format!("{:08}", n + 1), "text": text }),
                spec: JobSpec::default(),
            })
            .collect();
        utils.add_raw_jobs(&specs).await.expect("jobs are added");
        added = until;
    }
    json!({ "filled": added })
}

async fn drain(pool: PgPool, jobs: u64) -> Value {
    let began = Instant::now();
    let options = WorkerOptions::default()
        .pg_pool(pool)
        .schema(SCHEMA)
        .concurrency(500)
        .poll_interval(Duration::from_millis(5))
        .complete_job_batch_delay(Duration::from_millis(5))
        .local_queue(LocalQueueConfig::default().with_size(5000))
        .define_job::<Noop>();
    let worker = Arc::new(options.init().await.expect("a worker"));
    let running = Arc::clone(&worker);
    let running = tokio::spawn(async move { running.run().await });
    while DONE.load(Ordering::Relaxed) < jobs {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    // Completions that are still in a batch are written here, outside of the time.
    worker.request_shutdown();
    running.await.expect("the worker ends").expect("the worker ends well");
    json!({ "drained": DONE.load(Ordering::Relaxed), "seconds": seconds })
}
