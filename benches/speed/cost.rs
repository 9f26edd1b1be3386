//! What work costs the database, read from the server's log of changes and from the system's account of its processes.
//!
//! Both are exact where the server's statistics are late or estimated: every commit, every index entry and every row
//! version that became dead has its record in the log, and a session that has ended is accounted to its parent.

use sqlx::{PgConnection, Row};

use crate::bench::count;
use crate::database::{open, run};
use crate::report::{Goal, Report};

/// Ticks of the system's clock for a process's time.
const TICKS_A_SECOND: f64 = 100.0;

/// Where the server stood.
pub struct Reading {
    position: String,
    processor_seconds: f64,
}

/// What happened on the whole server between two readings, for each event.
pub struct Cost {
    /// Bytes of log but for images of whole pages, which depend on when the last checkpoint was.
    wal_bytes: f64,
    page_image_bytes: f64,
    commits: f64,
    dead_versions: f64,
    index_entries: f64,
    processor_microseconds: f64,
}

impl Reading {
    /// Reads; the work that is to be counted begins after this.
    pub async fn take(admin: &str) -> Self {
        let mut connection = open(admin).await;
        run(&mut connection, "CREATE EXTENSION IF NOT EXISTS pg_walinspect").await;
        Self::of(&mut connection).await
    }

    async fn of(connection: &mut PgConnection) -> Self {
        let query = sqlx::query("SELECT pg_current_wal_flush_lsn()::text, pg_backend_pid()");
        let row = query.fetch_one(connection).await.expect("where the log ends");
        Self { position: row.get(0), processor_seconds: processor_seconds(row.get(1)) }
    }

    /// What was done since, divided by so many events.
    pub async fn cost_since(&self, admin: &str, events: u64) -> Cost {
        let mut connection = open(admin).await;
        let now = Self::of(&mut connection).await;
        let query = sqlx::query(
            "SELECT pg_wal_lsn_diff($2::pg_lsn, $1::pg_lsn)::float8 AS bytes,
                    coalesce(sum(fpi_size), 0)::float8 AS page_images,
                    coalesce(sum(count) FILTER (WHERE kind LIKE 'Transaction/COMMIT%'), 0)::float8 AS commits,
                    coalesce(sum(count) FILTER (WHERE kind LIKE 'Heap/%UPDATE%' OR kind LIKE 'Heap/DELETE%'), 0)::float8
                        AS dead_versions,
                    coalesce(sum(count) FILTER (WHERE kind LIKE 'Btree/INSERT%'), 0)::float8 AS index_entries
             FROM pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true)
                  AS stats (kind, count, count_share, record_size, record_share, fpi_size, fpi_share, size, share)",
        );
        let query = query.bind(&self.position).bind(&now.position);
        let row = query.fetch_one(&mut connection).await.expect("the server's log can be read");
        let each = |total: f64| total / count(events);
        let (bytes, page_images): (f64, f64) = (row.get("bytes"), row.get("page_images"));
        Cost {
            wal_bytes: each(bytes - page_images),
            page_image_bytes: each(page_images),
            commits: each(row.get("commits")),
            dead_versions: each(row.get("dead_versions")),
            index_entries: each(row.get("index_entries")),
            processor_microseconds: each((now.processor_seconds - self.processor_seconds) * 1e6),
        }
    }
}

impl Cost {
    /// One figure for each part; the bytes of log may be held to a goal.
    pub fn add_to(&self, report: &mut Report, what: &str, wal_goal: Option<Goal>) {
        let wal = format!("{what}: WAL without page images, each event");
        match wal_goal {
            Some(goal) => report.judge(&wal, "bytes", self.wal_bytes, goal),
            None => report.add(&wal, "bytes", self.wal_bytes),
        }
        report.add(&format!("{what}: page images after a checkpoint, each event"), "bytes", self.page_image_bytes);
        report.add(&format!("{what}: commits, each 1,000 events"), "commits", self.commits * 1e3);
        report.add(&format!("{what}: dead row versions, each event"), "versions", self.dead_versions);
        report.add(&format!("{what}: index entries written, each event"), "entries", self.index_entries);
        report.add(&format!("{what}: processor time of the server, each event"), "µs", self.processor_microseconds);
    }
}

/// The time of all processes of the server to which this session belongs, those that have ended included.
fn processor_seconds(session: i32) -> f64 {
    let session = Process::read(&session.to_string()).expect("the session runs on this machine");
    let server = session.parent;
    let mut ticks = 0.0;
    for entry in std::fs::read_dir("/proc").expect("Linux") {
        let name = entry.expect("Linux").file_name();
        let Some(process) = name.to_str().and_then(Process::read) else { continue };
        if process.id == server {
            ticks += process.own_ticks + process.ended_children_ticks;
        } else if process.parent == server {
            ticks += process.own_ticks;
        }
    }
    ticks / TICKS_A_SECOND
}

/// One process, as the system accounts it.
struct Process {
    id: u32,
    parent: u32,
    own_ticks: f64,
    ended_children_ticks: f64,
}

impl Process {
    fn read(id: &str) -> Option<Self> {
        let id = id.parse().ok()?;
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name before it may hold spaces and brackets.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Self {
            id,
            parent: fields.get(1)?.parse().ok()?,
            own_ticks: ticks(11)? + ticks(12)?,
            ended_children_ticks: ticks(13)? + ticks(14)?,
        })
    }
}
