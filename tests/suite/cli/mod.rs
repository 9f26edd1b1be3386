//! The command line, tried through the real program, on a `SQLite` file where the database does not matter.

mod doctor;
mod operating;
mod remote;
mod stats;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::postgres::fresh_database;
use crate::support::program::{Program, http};

const DISCARD: &str = "[[route]]\nname = \"all\"\ntypes = [\"*\"]\nhandler = \"discard\"\n";
const ID: &str = "0197a0c2-7b1e-7c3a-9f00-0242ac120002";

/// A folder whose only route leads to a port on which nobody listens, with one dead letter.
fn with_a_dead_letter() -> Program {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let route = format!("[[route]]\nname = \"all\"\ntypes = [\"*\"]\nurl = \"http://{closed}/\"\n");
    let program = Program::migrated(&route);
    program.succeed(&["enqueue", "a.b", "{}", "--id", ID, "--max-attempts", "1"]);
    let report = program.json(&["process"]);
    assert_eq!(report["dead_letter_ids"], serde_json::json!([ID]), "{report}");
    program
}

#[test]
fn an_event_is_enqueued_from_standard_input_and_shown_byte_for_byte() {
    let program = Program::migrated("");
    let payload = r#"{"n":9007199254740993,"a":1.0,"a":2}"#;
    let arguments = ["enqueue", "invoice.created", "-", "--id", ID, "--subject", "invoice/42", "--header", "x-a=b"];
    assert!(program.run_with_input(&arguments, payload).status.success());

    let shown = program.succeed(&["events", "show", ID, "--attempts", "--json"]);

    assert!(shown.contains(payload), "{shown}");
    let event: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&event["type"], &event["subject"]), (&"invoice.created".into(), &"invoice/42".into()));
    assert_eq!((&event["status"], &event["headers"]["x-a"]), (&"pending".into(), &"b".into()));
    assert_eq!(event["attempts_log"], serde_json::json!([]));
}

#[test]
fn a_refused_event_is_explained_by_pointers() {
    let program = Program::migrated("");
    let problem = program.fail(&["enqueue", "a b", "{}", "--max-attempts", "0", "--header", "host=x"]);
    for pointer in ["/type", "/max_attempts", "/headers"] {
        assert!(problem.contains(pointer), "{problem}");
    }
    assert!(program.fail(&["enqueue", "a", "{"]).contains("/payload"));
    assert!(program.fail(&["events", "show", ID]).contains(ID));
}

#[test]
fn an_idempotency_key_writes_once_and_refuses_other_content() {
    let program = Program::migrated("");
    let first = program.json(&["enqueue", "a", "1", "--idempotency-key", "k"]);
    let again = program.json(&["enqueue", "a", "1", "--idempotency-key", "k"]);
    assert_eq!(first["id"], again["id"]);
    assert!(program.fail(&["enqueue", "a", "2", "--idempotency-key", "k"]).contains("/idempotency_key"));
}

#[test]
fn a_run_reports_as_json_and_takes_only_the_types_that_were_named() {
    let program = Program::migrated(DISCARD);
    program.succeed(&["enqueue", "a", "1"]);
    program.succeed(&["enqueue", "b", "2"]);
    let of_a = program.json(&["process", "--type", "a"]);
    let of_rest = program.json(&["process", "--batch-size", "10", "--max-runtime-ms", "40000"]);
    assert_eq!((&of_a["claimed"], &of_a["completed"]), (&1.into(), &1.into()), "{of_a}");
    assert_eq!((&of_rest["completed"], &of_rest["stop_reason"]), (&1.into(), &"drained".into()), "{of_rest}");
}

#[test]
fn a_run_that_cannot_be_done_exits_with_1() {
    let program = Program::migrated(DISCARD);
    assert!(program.fail(&["process", "--max-runtime-ms", "900000"]).contains("840000"));
    assert!(program.fail(&["process", "--max-runtime-ms", "1000"]).contains("max_runtime_ms must be at least 31000"));
    assert!(program.fail(&["process", "--min-remaining-ms", "60000"]).contains("--min-remaining-ms"));
}

#[test]
fn a_dead_letter_is_listed_and_requeued() {
    let program = with_a_dead_letter();
    let page = program.json(&["dead-letters", "list", "--type", "a.b", "--json"]);
    assert_eq!(page["data"][0]["id"], ID);
    assert_eq!(program.json(&["dead-letters", "list", "--type", "other", "--json"])["data"], serde_json::json!([]));

    let event = program.json(&["dead-letters", "requeue", ID, "--delay-ms", "60000", "--max-attempts", "3", "--json"]);

    assert_eq!((&event["status"], &event["requeues"]), (&"pending".into(), &1.into()));
    assert_eq!((&event["attempts"], &event["max_attempts"]), (&0.into(), &3.into()));
    assert!(program.fail(&["dead-letters", "requeue", ID]).contains("it is pending"));
}

#[test]
fn a_dead_letter_is_discarded_with_a_note() {
    let program = with_a_dead_letter();
    let event = program.json(&["dead-letters", "discard", ID, "--note", "test data", "--json"]);
    assert_eq!((&event["status"], &event["last_error"]), (&"skipped".into(), &"test data".into()));
    assert!(program.fail(&["dead-letters", "discard", ID]).contains("it is skipped"));
}

#[test]
fn the_list_of_dead_letters_goes_on_at_its_cursor() {
    let program = with_a_dead_letter();
    program.succeed(&["enqueue", "a.c", "{}", "--max-attempts", "1"]);
    program.succeed(&["process"]);
    let first = program.json(&["dead-letters", "list", "--limit", "1", "--json"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = program.json(&["dead-letters", "list", "--limit", "1", "--cursor", cursor, "--json"]);
    assert_eq!((&first["data"][0]["type"], &second["data"][0]["type"]), (&"a.c".into(), &"a.b".into()));
}

#[test]
fn without_a_schema_every_command_says_to_migrate() {
    let program = Program::with_settings(DISCARD);
    for arguments in [&["process"][..], &["enqueue", "a", "1"], &["events", "show", ID], &["serve", "--no-migrate"]] {
        assert!(program.fail(arguments).contains("outboxd migrate"), "{arguments:?}");
    }
}

#[test]
fn an_outbox_is_chosen_by_its_name_among_those_that_there_are() {
    let columns = ["id", "payload", "status", "attempts", "available_at", "locked_at", "created_at"];
    let columns = columns.map(|column| format!("{column} = \"{column}\"\n")).concat();
    let labels = "pending = 0\nprocessing = 1\ncompleted = 2\ndead_letter = 3\n";
    let hooks = "[[outbox]]\nname = \"hooks\"\ntable = \"hook\"\nfixed_type = \"hook.due\"\n";
    let settings = format!("{hooks}[outbox.columns]\n{columns}[outbox.status]\n{labels}");
    let program = Program::with_settings(&settings);
    for arguments in [
        &["enqueue", "hook.due", "1", "--outbox", "hook"][..],
        &["events", "show", "42", "--outbox", "hook"],
        &["dead-letters", "list", "--outbox", "hook"],
        &["dead-letters", "requeue", "42", "--outbox", "hook"],
        &["dead-letters", "discard", "42", "--outbox", "hook"],
    ] {
        let problem = program.fail(arguments);
        assert!(problem.contains("--outbox: \"hook\" names no outbox, did you mean \"hooks\"?"), "{problem}");
        assert!(problem.contains("valid are \"default\", \"hooks\""), "{problem}");
    }
    let of_columns = ["--outbox", "hooks", "--subject", "s", "--header", "x-a=b", "--max-attempts", "3"];
    let problem = program.fail(&[&["enqueue", "hook.due", "1"][..], &of_columns].concat());
    for field in ["/subject", "/headers", "/max_attempts"] {
        assert!(problem.contains(field), "{problem}");
    }
    assert!(program.fail(&["enqueue", "other", "1", "--outbox", "hooks"]).contains("\"hook.due\""));

    let only = Program::with_settings(&format!("default_outbox = false\n{settings}"));
    let problem = only.fail(&["enqueue", "hook.due", "1"]);
    assert!(problem.contains("--outbox: is missing") && problem.contains("valid are \"hooks\""), "{problem}");
}

#[test]
fn an_id_that_is_none_is_refused_with_an_example_of_one() {
    let output = Program::with_settings("").run(&["events", "show", "42"]);
    let problem = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(problem.contains("'42'") && problem.contains(ID), "{problem}");
}

#[test]
fn a_command_says_which_database_it_uses_only_when_none_is_named() {
    let errors = |program: &Program| String::from_utf8(program.run(&["dead-letters", "list"]).stderr).unwrap();
    let unnamed = errors(&Program::migrated(""));
    assert!(unnamed.contains("database_url is not set: sqlite://outboxd.db"), "{unnamed}");
    assert_eq!(errors(&Program::migrated("database_url = \"sqlite://outboxd.db\"")), "");
}

#[test]
fn an_event_that_has_become_a_dead_letter_is_named_in_the_log() {
    let route = "[[route]]\nname = \"nobody\"\ntypes = [\"*\"]\nurl = \"http://127.0.0.1:1/\"";
    let program = Program::migrated(route);
    program.succeed(&["enqueue", "a", "1", "--id", ID, "--max-attempts", "1"]);
    let log = String::from_utf8(program.run(&["process"]).stderr).unwrap();
    let line = log.lines().find(|line| line.contains("an event has become a dead letter"));
    assert!(line.is_some_and(|line| line.contains(ID)), "{log}");
}

#[test]
fn the_service_migrates_answers_and_ends_with_0_on_sigterm() {
    let program = Program::with_settings(DISCARD);
    let service = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    let address = service.ready_address();
    assert_eq!(http(address, "GET", "/readyz", "").0, 200);
    assert_eq!(http(address, "POST", "/v1/events", "{\"type\":\"a\",\"payload\":1}").0, 201);
    let (status, report) = http(address, "POST", "/v1/process", "");
    assert!(status == 200 && report.contains("\"completed\":1"), "{report}");
    assert_eq!(service.terminate().code(), Some(0));
}

#[test]
fn a_poller_processes_by_itself() {
    let program = Program::with_settings(&format!("[poller]\ninterval = \"100ms\"\n{DISCARD}"));
    let service = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    let address = service.ready_address();
    let body = format!("{{\"id\":\"{ID}\",\"type\":\"a\",\"payload\":1}}");
    assert_eq!(http(address, "POST", "/v1/events", &body).0, 201);
    let deadline = Instant::now() + Duration::from_secs(30);
    while !http(address, "GET", &format!("/v1/events/{ID}"), "").1.contains("\"completed\"") {
        assert!(Instant::now() < deadline, "the poller never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_poller_names_types_that_wait_without_a_route() {
    let program = Program::with_settings("[poller]\ninterval = \"100ms\"");
    let service = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    let address = service.ready_address();
    assert_eq!(http(address, "POST", "/v1/events", "{\"type\":\"order.paid\",\"payload\":1}").0, 201);
    let line = service.line_of_log("no route takes their types");
    assert!(line.contains("order.paid"), "{line}");
}

#[test]
fn dev_delivers_to_its_own_receiver() {
    let program = Program::with_settings("this is not even TOML, and dev does not read it");
    let dev = program.start(&["dev", "--port", "0"]);
    let banner = dev.line_of_output("running on http://");
    let address = banner.rsplit("http://").next().unwrap().parse().unwrap();
    let enqueue = dev.line_of_output("curl");
    let body = enqueue.split('\'').rev().nth(1).unwrap();
    assert_eq!(http(address, "POST", "/v1/events", body).0, 201, "{enqueue}");
    let delivery = dev.line_of_output("-> ");
    assert!(delivery.contains("invoice.created") && delivery.contains("attempt 1"), "{delivery}");
    assert_eq!(dev.terminate().code(), Some(0));
}

#[test]
fn dev_stays_on_this_machine_and_without_a_settings_file() {
    let program = Program::with_settings("");
    assert!(program.fail(&["dev", "--listen", "0.0.0.0:0"]).contains("--listen"));
    assert!(program.fail(&["dev", "--config", "outboxd.toml"]).contains("--config"));
    assert!(program.fail(&["--config", "outboxd.toml", "dev"]).contains("--config"));
    assert!(!program.succeed(&["dev", "--help"]).contains("--config"));
}

#[test]
fn a_busy_port_is_named_with_the_flag_that_changes_it() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let program = Program::with_settings("");
    for command in ["serve", "dev"] {
        let problem = program.fail(&[command, "--listen", &address]);
        assert!(problem.contains(&address) && problem.contains("--listen"), "{problem}");
    }
}

#[test]
fn an_unreachable_database_ends_the_start_in_time_and_without_its_password() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let program = Program::with_settings("");
    let started = Instant::now();
    // `sslpassword` is one that the driver does not know.
    let url = format!("postgres://app:s3cret@{closed}/app?sslpassword=s3cret");
    let problem = program.fail(&["serve", "--database-url", &url]);
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(problem.contains("database_url") && problem.contains(&closed.to_string()), "{problem}");
    assert!(!problem.contains("s3cret"), "{problem}");
    let problem = program.fail(&["migrate", "--database-url", "sqlite:///nowhere/at/all.db"]);
    assert!(problem.contains("database_url") && problem.contains("/nowhere/at/all.db"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_database_ends_in_what_to_look_at() {
    let program = Program::with_settings("");
    let problem = |url: &str| program.fail(&["migrate", "--database-url", url]);

    // No resolver is asked for a name with a part of more than 63 characters.
    let unresolved = problem(&format!("postgres://app@{}/app", "a".repeat(64)));
    let absent = problem(&fresh_database().await.replace("outboxd_test_", "outboxd_absent_"));

    assert!(unresolved.contains("its host name cannot be resolved"), "{unresolved}");
    assert!(absent.contains("the database does not exist; create it"), "{absent}");
    assert!(!absent.contains("is running"), "{absent}");
}

#[test]
fn settings_are_shown_and_bad_ones_refused_before_anything_starts() {
    let good = Program::with_settings(DISCARD);
    assert!(good.succeed(&["config", "check"]).parse::<toml::Table>().unwrap().contains_key("server"));
    let bad = Program::with_settings("[server]\nlisten_on = \"x\"");
    for arguments in [&["config", "check"][..], &["serve"], &["migrate"]] {
        let problem = bad.fail(arguments);
        assert!(problem.contains("listen_on") && problem.contains("listen"), "{problem}");
    }
    let open = Program::with_settings("");
    assert!(open.fail(&["serve", "--listen", "0.0.0.0:0"]).contains("--insecure-no-auth"));
}

#[test]
fn the_interface_describes_itself() {
    assert!(Program::with_settings("").succeed(&["openapi"]).starts_with("openapi: 3.1"));
}
