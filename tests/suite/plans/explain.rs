//! How Postgres runs one of the store's statements, and whether that is cheap whatever the table's size.

use outboxd::store::StoreOptions;
use outboxd::store::postgres::PostgresStore;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// Rows that a statement may sort or hash: more than any of them is asked for, far fewer than a backlog.
const MOST_ROWS: f64 = 2_000.0;

/// A session as the store's own are, with all of the store's statements prepared.
pub struct Session {
    connection: PgConnection,
    statements: Vec<(&'static str, String)>,
}

impl Session {
    /// Connects and prepares. `plans` is a value of `plan_cache_mode`.
    pub async fn open(url: &str, plans: &str) -> Self {
        let statements = PostgresStore::connect(&StoreOptions::new(url)).unwrap().statements();
        let mut session = Self::with(url, &PostgresStore::session_settings(), statements).await;
        session.run(format!("SET plan_cache_mode = {plans}")).await;
        session
    }

    /// Connects as any store would, and prepares its statements.
    pub async fn with(url: &str, settings: &[(&str, &str)], statements: Vec<(&'static str, String)>) -> Self {
        let mut connection = PgConnection::connect(url).await.unwrap();
        for (name, value) in settings {
            run(&mut connection, format!("SET {name} = {value}")).await;
        }
        for (name, text) in &statements {
            run(&mut connection, format!("PREPARE outboxd_{name} AS {text}")).await;
        }
        Self { connection, statements }
    }

    /// Makes the cached plan of every statement now, which a session that forces generic plans then keeps.
    pub async fn plan_all(&mut self) {
        for (name, text) in &self.statements.clone() {
            let arguments = (1..).take_while(|number| text.contains(&format!("${number}"))).map(|_| "NULL");
            let arguments = arguments.collect::<Vec<_>>().join(", ");
            let list = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
            self.run(format!("EXPLAIN EXECUTE outboxd_{name}{list}")).await;
        }
    }

    /// Runs a statement, written as `name(arguments)`, and tells how.
    pub async fn explain(&mut self, call: &str) -> Explained {
        self.explain_sql(&format!("EXECUTE outboxd_{call}")).await
    }

    /// Runs any statement and tells how.
    pub async fn explain_sql(&mut self, sql: &str) -> Explained {
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}");
        let row = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_one(&mut self.connection).await;
        let row = row.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let text: String = row.try_get_unchecked(0).unwrap();
        let plans: Value = serde_json::from_str(&text).unwrap();
        Explained { plan: plans[0]["Plan"].clone() }
    }

    /// A statement of the test's own.
    pub async fn run(&mut self, sql: impl Into<String>) {
        run(&mut self.connection, sql.into()).await;
    }

    /// The single value of a query, as text.
    pub async fn text(&mut self, sql: impl Into<String>) -> String {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&mut self.connection).await.unwrap()
    }
}

async fn run(connection: &mut PgConnection, sql: String) {
    let head: String = sql.chars().take(200).collect();
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{head}: {error}"));
}

/// How a statement ran.
pub struct Explained {
    plan: Value,
}

impl Explained {
    /// Pages that it touched, found in memory or not.
    pub fn buffers(&self) -> u64 {
        let blocks = |name: &str| self.plan[name].as_u64().unwrap();
        blocks("Shared Hit Blocks") + blocks("Shared Read Blocks")
    }

    /// Everything about it that would grow with the table.
    pub fn problems(&self, most_buffers: u64) -> Vec<String> {
        let mut found = Vec::new();
        if self.buffers() > most_buffers {
            found.push(format!("touches {} buffers, at most {most_buffers} are allowed", self.buffers()));
        }
        judge(&self.plan, &mut found);
        found
    }

    /// The plan, for a failure's text.
    pub fn outline(&self) -> String {
        let mut text = String::new();
        outline(&self.plan, 0, &mut text);
        text
    }
}

fn judge(node: &Value, found: &mut Vec<String>) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let children: &[Value] = node["Plans"].as_array().map_or(&[], Vec::as_slice);
    if kind == "Seq Scan"
        && ["event", "attempt", "outbox_event"].contains(&node["Relation Name"].as_str().unwrap_or_default())
    {
        found.push(format!("scans the whole of {}", node["Relation Name"]));
    }
    if ["Sort", "Incremental Sort", "Hash"].contains(&kind) {
        let rows: f64 = children.iter().map(rows).sum();
        if rows > MOST_ROWS {
            found.push(format!("{kind} over {rows} rows"));
        }
    }
    for child in children {
        judge(child, found);
    }
}

fn rows(node: &Value) -> f64 {
    node["Actual Rows"].as_f64().unwrap_or(0.0) * node["Actual Loops"].as_f64().unwrap_or(0.0)
}

fn outline(node: &Value, depth: usize, text: &mut String) {
    let word = |name: &str| node[name].as_str().unwrap_or_default().to_owned();
    let line = format!(
        "{:indent$}{} {} {} rows={} removed={} buffers={}\n",
        "",
        word("Node Type"),
        word("Relation Name"),
        word("Index Name"),
        rows(node),
        node["Rows Removed by Filter"],
        node["Shared Hit Blocks"].as_u64().unwrap_or(0) + node["Shared Read Blocks"].as_u64().unwrap_or(0),
        indent = depth * 2,
    );
    text.push_str(&line);
    for child in node["Plans"].as_array().into_iter().flatten() {
        outline(child, depth + 1, text);
    }
}
