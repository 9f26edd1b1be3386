//! Tables that were there before outboxd, taken over by description alone: the real program, real Postgres, a real
//! receiver. The tables are made here as their applications' migrations would make them, and filled as those would.

pub mod drizzle;
mod operating;
pub mod prisma;
mod side_by_side;
mod sqlite;
mod sqlite_fit;
mod sqlite_stats;
mod stats;
mod unseen;

use std::net::SocketAddr;

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool, Row as _};

use crate::support::postgres::fresh_database;
use crate::support::program::{Program, Running, http};
use crate::support::receiver::Receiver;

/// A database with an application's tables, and the program's settings for them.
struct World {
    pool: PgPool,
    program: Program,
    receiver: Receiver,
}

impl World {
    /// Makes the tables, then the settings: `{receiver}` in them becomes the receiver's URL.
    async fn new(tables: &str, settings: &str) -> Self {
        let url = fresh_database().await;
        let pool = PgPool::connect(&url).await.unwrap();
        let receiver = Receiver::start().await;
        let settings = settings.replace("{receiver}", &receiver.url("/in"));
        let program = Program::with_settings(&format!(
            "database_url = \"{url}\"\n{settings}\n[server]\nlisten = \"127.0.0.1:0\"\n"
        ));
        let world = Self { pool, program, receiver };
        world.sql(tables).await;
        let before = world.shape().await;
        world.program.succeed(&["migrate"]);
        assert_eq!(world.shape().await, before, "an application's table is never altered");
        world
    }

    fn serve(&self) -> Service {
        let running = self.program.start(&["serve"]);
        let address = running.ready_address();
        Service { running, address }
    }

    async fn sql(&self, sql: &str) -> u64 {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.unwrap().rows_affected()
    }

    /// One text, NULL being `-`.
    async fn ask(&self, sql: &str) -> String {
        let sql = format!("SELECT coalesce(({sql})::text, '-')");
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.unwrap()
    }

    /// Columns, constraints and indexes of the application's tables.
    async fn shape(&self) -> Vec<String> {
        let sql = "SELECT format('%s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod)) AS part
                   FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
                   WHERE relnamespace = 'public'::regnamespace AND attnum > 0
                   UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await.unwrap();
        rows.iter().map(|row| row.get("part")).collect()
    }
}

/// The program while it serves.
struct Service {
    running: Running,
    address: SocketAddr,
}

impl Service {
    /// Must be answered with this status.
    fn call(&self, method: &str, path: &str, body: &str, status: u16) -> Value {
        let (got, answer) = http(self.address, method, path, body);
        assert_eq!(got, status, "{method} {path}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_default()
    }

    /// A run over all outboxes.
    fn process(&self, query: &str) -> Value {
        self.call("POST", &format!("/v1/process?max_runtime_ms=60000&batch_size=10000{query}"), "", 200)
    }
}
