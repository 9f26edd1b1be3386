//! A real PgBouncer in transaction mode before the tests' Postgres.
//!
//! A small shell looks after it and reads from a pipe. When the test process ends, in whatever way, the pipe closes; the
//! shell then stops the pooler and removes its folder.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;

use super::postgres::{free_port, owner, with_authority};

/// Connections to Postgres: far fewer than the tests' sessions, so that they keep changing places.
const SERVER_CONNECTIONS: u32 = 4;

const KEEPER: &str = r#"
program=$1 dir=$2 user=$3
trap '' INT TERM HUP PIPE
cd /
if [ -n "$user" ]; then
    chown -R "$user" "$dir"
    setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups -- "$program" -q "$dir/settings" &
else
    "$program" -q "$dir/settings" &
fi
read -r _
kill "$!"
wait
rm -rf "$dir"
"#;

/// A running pooler.
pub struct Pooler {
    keeper: Child,
    url: String,
}

impl Pooler {
    /// Starts a pooler before the server of this URL.
    pub fn start(database_url: &str) -> Self {
        let port = free_port();
        let folder = tempfile::Builder::new().prefix("outboxd-pooler-").tempdir().expect("a temporary folder").keep();
        std::fs::write(folder.join("settings"), settings(database_url, port, &folder)).expect("settings are written");
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "outboxd-pooler-keeper"])
            .arg(program())
            .arg(&folder)
            .arg(owner())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("/bin/sh starts");
        let give_up = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > give_up || keeper.try_wait().is_ok_and(|ended| ended.is_some()) {
                drop(keeper.stdin.take());
                let said = keeper.stderr.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
                panic!("PgBouncer does not start: {:?}", said.map_while(Result::ok).collect::<Vec<_>>());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = with_authority(database_url, &format!("anybody@127.0.0.1:{port}"));
        Self { keeper, url }
    }

    /// The URL of the same database, through the pooler.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Nothing but what transaction mode needs: no setting that would make the pooler overlook what a client does wrong.
fn settings(database_url: &str, port: u16, folder: &std::path::Path) -> String {
    let after_scheme = database_url.split_once("://").expect("a URL has a scheme").1;
    let (address, _) = after_scheme.split_once('?').unwrap_or((after_scheme, ""));
    let (authority, database) = address.split_once('/').expect("the URL names a database");
    let (login, address) = authority.rsplit_once('@').unwrap_or(("postgres", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, server_port) = address.split_once(':').unwrap_or((address, "5432"));
    let quoted = |text: &str| format!("'{}'", percent_decode_str(text).decode_utf8_lossy().replace('\'', "''"));
    let password = if password.is_empty() { String::new() } else { format!("password={}", quoted(password)) };
    format!(
        "[databases]\n{database} = host={host} port={server_port} user={user} {password}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
         pool_mode = transaction\ndefault_pool_size = {SERVER_CONNECTIONS}\nmax_client_conn = 200\nlogfile = {log}\n",
        host = quoted(host),
        user = quoted(user),
        log = folder.join("log").display(),
    )
}

fn program() -> PathBuf {
    let mut folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    // Debian puts it where not every user looks.
    folders.push(PathBuf::from("/usr/sbin"));
    folders.into_iter().map(|folder| folder.join("pgbouncer")).find(|path| path.is_file()).expect(
        "PgBouncer is not installed, and these tests do not skip: run scripts/test, which installs it, \
         or `apt-get install pgbouncer`",
    )
}
