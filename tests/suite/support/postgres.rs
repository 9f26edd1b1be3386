//! Postgres for tests: real servers, thrown away afterwards.
//!
//! [`fresh_database`] gives each test an empty database of its own. With `DATABASE_URL` in the environment the databases
//! are made on that server and stay there; without it, one throwaway server is started for the whole test process from
//! the installed binaries. That is why the suite runs under plain `cargo test`: a runner that makes a process of every
//! test would start a server for each. [`Server`] is a private server for tests that stop and restart their database.
//!
//! A throwaway server is looked after by a small shell that reads commands from a pipe. When the test process ends, in
//! whatever way, the pipe closes; the shell then stops the server and removes its folder.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

/// Ports of throwaway servers: below those that the kernel hands out, so that a stopped server's port stays free.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// What the shell beside a server does. It answers each command with one line: `ok`, or what went wrong.
const KEEPER: &str = r#"
bin=$1 dir=$2 port=$3 user=$4
trap '' INT TERM HUP PIPE
as_owner() {
    if [ -n "$user" ]; then
        setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups -- "$@"
    else
        "$@"
    fi
}
start() { as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 60 start; }
stop() { as_owner "$bin/pg_ctl" -D "$dir/data" -m immediate -w -t 60 stop; }
create() {
    if [ -n "$user" ]; then chown "$user" "$dir"; fi
    as_owner "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync || return
    as_owner tee -a "$dir/data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$dir'
max_connections = 300
fsync = off
full_page_writes = off
END
}
cd /
while read -r command; do
    if "$command" >"$dir/keeper" 2>&1 </dev/null; then
        echo ok
    else
        echo "$command failed: $(tail -n 5 "$dir/keeper" "$dir/log" 2>&1 | tr '\n' ' ')"
    fi
done
stop >/dev/null 2>&1 </dev/null
rm -rf "$dir"
"#;

/// The URL of an empty database that no other test has.
pub async fn fresh_database() -> String {
    static SHARED: OnceLock<Server> = OnceLock::new();
    let given = std::env::var("DATABASE_URL").ok().filter(|url| url.starts_with("postgres"));
    let admin = match given {
        Some(url) => url,
        None => SHARED.get_or_init(Server::launch).url().to_owned(),
    };
    let name = format!("outboxd_test_{}", Uuid::now_v7().simple());
    let mut connection = PgConnection::connect(&admin).await.expect("the tests' Postgres answers");
    let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"));
    sqlx::raw_sql(create).execute(&mut connection).await.expect("the tests' role may create databases");
    connection.close().await.expect("the connection closes");
    with_database(&admin, &name)
}

/// The same server's URL with another database in it.
fn with_database(url: &str, name: &str) -> String {
    let (address, options) = url.split_once('?').map_or((url, None), |(address, options)| (address, Some(options)));
    let authority = address.find("://").expect("a URL has a scheme") + 3;
    let end = address[authority..].find('/').map_or(address.len(), |at| authority + at);
    let mut changed = format!("{}/{name}", &address[..end]);
    if let Some(options) = options {
        write!(changed, "?{options}").expect("text can be written");
    }
    changed
}

/// The same database's URL by another login and address.
pub fn with_authority(url: &str, authority: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    format!("{scheme}://{authority}{}", &rest[end..])
}

/// A Postgres server of one test's own. It is gone when this is dropped or the process ends.
pub struct Server {
    url: String,
    keeper: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Server {
    /// Makes and starts a server with default settings but for `fsync = off`.
    #[allow(clippy::unused_async, reason = "callers need not know that starting blocks")]
    pub async fn start() -> Self {
        Self::launch()
    }

    /// The URL of the database `postgres`; it stays the same over restarts.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server at once, as a crash would: sessions are cut, nothing is finished.
    pub fn stop(&mut self) {
        self.command("stop");
    }

    /// Starts it again after [`Server::stop`], on the same port and data.
    pub fn start_again(&mut self) {
        self.command("start");
    }

    fn launch() -> Self {
        let port = free_port();
        let folder = tempfile::Builder::new().prefix("outboxd-postgres-").tempdir().expect("a temporary folder");
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "outboxd-postgres-keeper"])
            .arg(binaries())
            .args([folder.keep(), port.to_string().into(), owner().into()])
            .env_remove("PGDATA")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("/bin/sh starts");
        let commands = keeper.stdin.take();
        let answers = BufReader::new(keeper.stdout.take().expect("stdout is a pipe"));
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let mut server = Self { url, keeper, commands, answers };
        server.command("create");
        server.command("start");
        server
    }

    fn command(&mut self, command: &str) {
        let mut commands = self.commands.as_ref().expect("the pipe is open until the drop");
        writeln!(commands, "{command}").expect("the server's keeper runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the server's keeper answers");
        assert_eq!(answer.trim_end(), "ok", "the tests' Postgres at {}", self.url);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.keeper.wait();
    }
}

/// The folder of the newest installed server's programs.
fn binaries() -> PathBuf {
    let version = |folder: &Path| -> Option<u32> { folder.file_name()?.to_str()?.parse().ok() };
    let mut installed: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|folders| folders.filter_map(|folder| Some(folder.ok()?.path())).collect())
        .unwrap_or_default();
    installed.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    let mut candidates: Vec<PathBuf> = installed.iter().map(|folder| folder.join("bin")).collect();
    candidates.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let complete = |folder: &PathBuf| ["initdb", "pg_ctl", "postgres"].iter().all(|name| folder.join(name).is_file());
    candidates.into_iter().find(complete).expect(
        "no Postgres server is installed, and these tests do not skip: run scripts/test, which installs it, \
         or `apt-get install postgresql`, or give a server by DATABASE_URL",
    )
}

/// The user to run a server as: Postgres refuses to be root, anybody else runs it as himself.
pub fn owner() -> String {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|myself| myself.uid() == 0);
    if !is_root {
        return String::new();
    }
    let known = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
    let user = if known.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" };
    user.to_owned()
}

/// A port on which nothing listens.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let width = PORTS.end - PORTS.start;
    let first = u16::try_from(std::process::id() % u32::from(width)).expect("the rest is smaller than the width");
    (0..width)
        .map(|_| PORTS.start + first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % width)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

mod tests {
    use super::*;

    async fn ask(url: &str, sql: &'static str) -> Result<String, sqlx::Error> {
        let mut connection = PgConnection::connect(url).await?;
        sqlx::query_scalar(sql).fetch_one(&mut connection).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn each_fresh_database_is_another_one() {
        let (first, second) = (fresh_database().await, fresh_database().await);
        let name = "SELECT current_database()::text";
        assert_ne!(ask(&first, name).await.unwrap(), ask(&second, name).await.unwrap());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_private_server_comes_back_with_its_data_and_leaves_nothing() {
        let mut server = Server::start().await;
        let url = server.url().to_owned();
        let mut connection = PgConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("CREATE TABLE kept AS SELECT 'still here' AS words").execute(&mut connection).await.unwrap();
        let folder = ask(&url, "SHOW unix_socket_directories").await.unwrap();

        server.stop();
        ask(&url, "SELECT 'nobody is there'").await.unwrap_err();
        server.start_again();
        assert_eq!(ask(&url, "SELECT words FROM kept").await.unwrap(), "still here");

        drop(server);
        ask(&url, "SELECT 'nobody is there'").await.unwrap_err();
        assert!(!Path::new(&folder).exists(), "{folder} is still there");
    }

    #[test]
    fn a_database_is_put_into_urls_of_every_shape() {
        assert_eq!(
            with_database("postgres://a:b@host:1/old?sslmode=disable", "new"),
            "postgres://a:b@host:1/new?sslmode=disable"
        );
        assert_eq!(with_database("postgres://host", "new"), "postgres://host/new");
    }
}
