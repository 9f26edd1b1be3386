//! Databases to measure on, and events of 300 bytes to put into them.

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

/// Undoes what makes test servers fast and unsafe.
pub async fn make_durable(url: &str) {
    let mut connection = PgConnection::connect(url).await.expect("Postgres answers");
    for statement in [
        "ALTER SYSTEM SET fsync = on",
        "ALTER SYSTEM SET full_page_writes = on",
        "ALTER SYSTEM SET max_wal_size = '4GB'",
        "SELECT pg_reload_conf()",
    ] {
        sqlx::raw_sql(statement).execute(&mut connection).await.expect(statement);
    }
    connection.close().await.expect("the connection closes");
}

/// A new database on the same server.
pub async fn fresh(admin: &str) -> String {
    let name = format!("bench_{}", Uuid::now_v7().simple());
    let mut connection = PgConnection::connect(admin).await.expect("Postgres answers");
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.expect("a database");
    connection.close().await.expect("the connection closes");
    let (server, _) = admin.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}

/// Commits so many events that are due, as applications would have left them.
pub async fn postgres(url: &str, events: u64) {
    let mut connection = PgConnection::connect(url).await.expect("Postgres answers");
    let insert = "INSERT INTO outbox.event (event_type, payload) \
        SELECT 'bench.event', json_build_object('n', n, 'text', repeat('x', 270)) FROM generate_series(1, $1) AS n";
    sqlx::query(insert).bind(i64::try_from(events).expect("fits")).execute(&mut connection).await.expect("filled");
    sqlx::raw_sql("VACUUM ANALYZE outbox.event").execute(&mut connection).await.expect("vacuumed");
    sqlx::raw_sql("CHECKPOINT").execute(&mut connection).await.expect("a checkpoint");
    connection.close().await.expect("the connection closes");
}

/// The same in a SQLite file.
pub async fn sqlite(url: &str, events: u64) {
    let mut connection = SqliteConnection::connect(url).await.expect("the file opens");
    let insert = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1) \
        INSERT INTO outbox_event (event_type, payload) \
        SELECT 'bench.event', json_object('n', n, 'text', printf('%.*c', 270, 'x')) FROM numbers";
    sqlx::query(insert).bind(i64::try_from(events).expect("fits")).execute(&mut connection).await.expect("filled");
    connection.close().await.expect("the connection closes");
}
