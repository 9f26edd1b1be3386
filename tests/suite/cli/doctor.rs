//! `outboxd doctor` on real databases that something is the matter with.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::support::database::TestDb;
use crate::support::pooler::Pooler;
use crate::support::postgres::{fresh_database, with_authority};
use crate::support::program::Program;

const ROUTE: &str = "[[route]]\nname = \"orders\"\ntypes = [\"order.*\"]\nurl = \"http://127.0.0.1:9/\"\n";

/// What doctor says, and its exit code.
fn doctor(program: &Program, arguments: &[&str]) -> (String, Option<i32>) {
    let arguments: Vec<&str> = ["doctor"].into_iter().chain(arguments.iter().copied()).collect();
    let output = program.run(&arguments);
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

/// The program on this database, migrated.
fn on(url: &str, more: &str) -> Program {
    Program::migrated(&format!("database_url = \"{url}\"\n{more}{ROUTE}"))
}

/// The line that holds this text, and the one after it.
fn finding(text: &str, part: &str) -> (String, String) {
    let mut lines = text.lines().skip_while(|line| !line.contains(part)).map(str::to_owned);
    let found = lines.next().unwrap_or_else(|| panic!("{part:?} is not said: {text}"));
    (found, lines.next().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_holds_back_vacuum_is_named_with_what_ends_it() {
    let url = fresh_database().await;
    let program = on(&url, "");
    let (text, _) = doctor(&program, &["--transaction-age", "0s"]);
    assert!(text.contains("ok       nothing holds back vacuum"), "{text}");
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let begin = "SET application_name = 'a report'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    sqlx::raw_sql(begin).execute(&mut connection).await.unwrap();

    let (text, code) = doctor(&program, &["--transaction-age", "0s"]);

    let (what, remedy) = finding(&text, "holds back vacuum");
    assert!(what.starts_with("problem  session ") && what.contains("\"a report\" (idle in transaction)"), "{what}");
    assert!(remedy.starts_with("         remedy: ") && remedy.contains("pg_terminate_backend"), "{remedy}");
    assert_eq!(code, Some(1));
    let (text, code) = doctor(&program, &[]);
    assert!(text.contains("ok       nothing holds back vacuum"), "it is young: {text}");
    assert_eq!(code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_privilege_that_is_lacking_is_named_with_the_grant_that_gives_it() {
    let url = fresh_database().await;
    on(&url, "");
    let role = format!("clerk_{}", url.rsplit('_').next().unwrap());
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let grant = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA outbox TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA outbox TO {role}"
    );
    sqlx::raw_sql(AssertSqlSafe(grant)).execute(&mut connection).await.unwrap();
    let after_login = url
        .rsplit_once('@')
        .map_or_else(|| url.split_once("://").unwrap().1.to_owned(), |(_, address)| address.to_owned());
    let address = after_login.split(['/', '?']).next().unwrap();
    let clerk = with_authority(&url, &format!("{role}@{address}"));
    let program = Program::with_settings(&format!("database_url = \"{clerk}\"\n{ROUTE}"));

    let (text, code) = doctor(&program, &[]);

    let (what, remedy) = finding(&text, "on outbox.event");
    assert!(what.starts_with("problem  ") && what.contains("lacks INSERT, UPDATE, DELETE on outbox.event"), "{what}");
    assert!(remedy.contains(&format!("GRANT INSERT, UPDATE, DELETE ON outbox.event TO \"{role}\"")), "{remedy}");
    assert_eq!(code, Some(1));
    sqlx::raw_sql(AssertSqlSafe(format!("DROP OWNED BY {role}; DROP ROLE {role}")))
        .execute(&mut connection)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn due_events_that_nobody_called_for_are_loud_and_unrouted_types_are_named() {
    for sql in [TestDb::empty_sqlite().await, TestDb::empty_postgres().await] {
        let program = on(&sql.options.url, "");
        program.succeed(&["enqueue", "order.paid", "1"]);
        program.succeed(&["enqueue", "invoice.sent", "1"]);
        let (text, code) = doctor(&program, &[]);
        assert_eq!(code, Some(0), "they have become due just now: {text}");
        let ago = sql.ago(Duration::from_secs(3_600));
        sql.sql(&format!("UPDATE {{events}} SET {{available_at}} = {ago}")).await;

        let (text, code) = doctor(&program, &[]);

        let (what, remedy) = finding(&text, "NOTHING HAS CALLED");
        assert!(what.starts_with("problem  ") && what.contains("waits for 1h"), "{what}");
        assert!(remedy.contains("scheduler") && remedy.contains("[poller]"), "{remedy}");
        let (what, remedy) = finding(&text, "no route takes");
        assert!(what.starts_with("warning  ") && what.ends_with(": invoice.sent"), "{what}");
        assert!(remedy.contains("[[route]]"), "{remedy}");
        assert_eq!(code, Some(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_secrets_or_any_settings_it_goes_on_with_what_needs_no_routes() {
    let sql = TestDb::empty_postgres().await;
    let url = &sql.options.url;
    let full = on(url, "");
    full.succeed(&["enqueue", "order.paid", "1"]);
    let ago = sql.ago(Duration::from_secs(150));
    sql.sql(&format!("UPDATE {{events}} SET {{available_at}} = {ago}")).await;
    let sealed = Program::with_settings(&format!("database_url = \"{url}\"\n{ROUTE}secrets_env = [\"NOT_HERE\"]\n"));
    let bare = Program::with_settings(&format!("database_url = \"{url}\"\n"));
    for program in [&sealed, &bare] {
        let (text, code) = doctor(program, &[]);
        assert!(text.contains("nothing holds back vacuum"), "{text}");
        assert!(finding(&text, "no routes are known here").0.ends_with(": order.paid"), "{text}");
        assert!(finding(&text, "of any type waits for 2m").0.starts_with("problem  "), "late as on the page: {text}");
        let (what, remedy) = finding(&text, "no run has been kept yet");
        assert!(what.starts_with("warning  ") && remedy.contains("scheduler"), "{text}");
        assert!(!text.contains("nothing waits"), "{text}");
        assert_eq!(code, Some(1));
    }
    assert!(finding(&doctor(&sealed, &[]).0, "NOT_HERE").0.starts_with("problem  the service would not start"));
    sql.sql("DELETE FROM {events}").await;
    let (text, code) = doctor(&bare, &[]);
    assert!(finding(&text, "no run has been kept yet").0.starts_with("ok  ") && code == Some(0), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_run_that_failed_or_was_lost_is_told() {
    let url = fresh_database().await;
    let program = on(&url, "");
    // A run that does something: idle ones are kept once a minute.
    let make_run = || {
        program.succeed(&["enqueue", "order.paid", "1"]);
        assert_eq!(program.json(&["process"])["claimed"], 1);
        doctor(&program, &[]).0
    };
    assert!(!make_run().contains("the last run that is over"));
    let mut connection = PgConnection::connect(&url).await.unwrap();
    for (change, what) in [
        ("report = jsonb_set(report::jsonb, '{stop_reason}', '\"error\"')::json", "ended with stop_reason error"),
        ("finished_at = NULL, lost_after = now() - interval '1 second'", "was lost"),
    ] {
        let change = AssertSqlSafe(format!("UPDATE outbox.run SET {change}"));
        sqlx::raw_sql(change).execute(&mut connection).await.unwrap();
        let text = doctor(&program, &[]).0;
        let (line, remedy) = finding(&text, "the last run that is over");
        assert!(line.starts_with("warning  ") && line.contains(what) && remedy.contains("remedy"), "{text}");
        assert!(!make_run().contains("the last run that is over"), "the last one counts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_and_leases_that_nobody_took_back_are_told_by_route() {
    for sql in [TestDb::empty_sqlite().await, TestDb::empty_postgres().await] {
        let program = on(&sql.options.url, "");
        for _ in 0..10 {
            program.succeed(&["enqueue", "order.paid", "1", "--max-attempts", "1"]);
        }
        assert_eq!(program.json(&["process"])["dead_lettered"], 10);
        program.succeed(&["enqueue", "order.paid", "1"]);
        let ago = sql.ago(Duration::from_secs(3_600));
        let claim = format!(
            "UPDATE {{events}} SET {{status}} = 'processing', {{locked_at}} = {ago}, {{lease_until}} = {ago}, \
             {{claim_no}} = 1 WHERE {{status}} = 'pending'"
        );
        assert_eq!(sql.sql(&claim).await, 1);

        let (text, _) = doctor(&program, &[]);

        let (what, remedy) = finding(&text, "became dead letters");
        assert!(what.starts_with("warning  ") && what.contains("10 events of route \"orders\""), "{what}");
        assert!(remedy.contains("dead-letters requeue"), "{remedy}");
        assert!(finding(&text, "of the 10 events that the last").0.contains("10 of the 10"), "{text}");
        assert!(finding(&text, "longer than their leases").0.contains("1 events"), "{text}");
        assert!(text.contains("the last run began"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_is_noticed_whether_the_settings_name_it_or_not() {
    let url = fresh_database().await;
    let direct = on(&url, "");
    assert!(doctor(&direct, &[]).0.contains("ok       no pooler in transaction mode"));
    let pooler = Pooler::start(&url);
    let pooled = |setting: &str| {
        let url = pooler.url();
        Program::with_settings(&format!("database_url = \"{url}\"\n{ROUTE}[database]\npooler = {setting}\n"))
    };

    let (said, code) = doctor(&pooled("true"), &[]);
    assert!(said.contains("ok       a pooler in transaction mode stands"), "{said}");
    assert_eq!(code, Some(0), "{said}");
    let (unsaid, code) = doctor(&pooled("false"), &[]);
    assert!(unsaid.contains("problem  ") && unsaid.contains("database.pooler"), "{unsaid}");
    assert_eq!(code, Some(1));
    let needless = Program::with_settings(&format!("database_url = \"{url}\"\n{ROUTE}[database]\npooler = true\n"));
    assert!(finding(&doctor(&needless, &[]).0, "database.pooler is true and no pooler").0.starts_with("warning  "));
}

#[test]
fn findings_are_json_on_request_and_warnings_fail_only_when_strict() {
    let program = Program::migrated(ROUTE);
    let findings = program.json(&["doctor", "--json"]);
    let findings = findings["findings"].as_array().unwrap();
    let level = |level: &str| findings.iter().filter(|finding| finding["level"] == level).count();
    assert!(level("ok") > 0 && level("warning") > 0 && level("problem") == 0, "{findings:?}");
    assert!(findings.iter().all(|finding| finding["level"] == "ok" || finding["remedy"].is_string()), "{findings:?}");
    assert_eq!(doctor(&program, &["--strict"]).1, Some(1));
}

#[test]
fn access_for_everybody_and_one_mighty_token_are_told() {
    let open = Program::migrated("[server]\nlisten = \"0.0.0.0:8080\"\n");
    let (text, code) = doctor(&open, &[]);
    assert!(finding(&text, "token").0.starts_with("problem  "), "{text}");
    assert_eq!(code, Some(1));
    let scopes = "\"enqueue\", \"process\", \"read\", \"payload\", \"operate\"";
    let value = "a-long-enough-token-for-a-test";
    let mighty =
        Program::migrated(&format!("[[token]]\nname = \"all\"\nscopes = [{scopes}]\nvalue = \"{value}\"\n{ROUTE}"));
    let (text, code) = doctor(&mighty, &[]);
    assert!(finding(&text, "may do nearly everything").1.contains("\"process\" alone"), "{text}");
    assert!(!text.contains(value), "{text}");
    assert_eq!(code, Some(0));
}
