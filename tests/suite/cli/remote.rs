//! The same commands against a running server, with a token from the environment or a file.

use serde_json::{Value, json};

use super::operating::with_dead_letters;
use super::*;

const TOKENS: &str =
    "[[token]]\nname = \"oncall\"\nscopes = [\"read\", \"payload\", \"operate\"]\nvalue = \"s3cret-1\"\n
[[token]]\nname = \"reader\"\nscopes = [\"read\"]\nvalue = \"s3cret-2\"\n";

/// Runs in an empty folder, so that only the server can answer.
struct Client {
    elsewhere: Program,
    url: String,
}

impl Client {
    fn run(&self, token: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        let variables = [("OUTBOXD_URL", self.url.as_str()), ("OUTBOXD_API_TOKEN", token)];
        let output = self.elsewhere.run_with_environment(arguments, &variables);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (code, out, errors) = self.run("s3cret-1", &[arguments, &["--json"]].concat());
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
        serde_json::from_str(&out).unwrap()
    }
}

#[test]
fn a_server_is_asked_where_one_is_named_and_knows_who_asks() {
    let program = with_dead_letters(TOKENS);
    let service = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    let client = Client {
        elsewhere: Program::with_settings("not even TOML"),
        url: format!("http://{}", service.ready_address()),
    };

    let page = client.json(&["dead-letters", "list", "--type", "a.c"]);
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
    let done = client.json(&["dead-letters", "requeue", "--type", "a.c", "--limit", "2", "--all", "--note", "back"]);
    assert_eq!((&done["changed"], &done["more"]), (&json!(3), &json!(false)));
    let id = done["sample_ids"][0].as_str().unwrap();
    let event = client.json(&["events", "show", id, "--attempts"]);
    assert_eq!(
        (&event["actions_log"][0]["actor"], &event["actions_log"][0]["note"]),
        (&json!("oncall"), &json!("back"))
    );
    assert_eq!(client.json(&["events", "cancel", id])["status"], "skipped");
    let (_, table, _) = client.run("s3cret-2", &["events", "list", "--status", "skipped"]);
    assert!(table.contains(id), "{table}");

    let (code, out, errors) = client.run("s3cret-2", &["dead-letters", "discard", "--type", "a.b"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(errors.contains("`operate`") && errors.contains("(forbidden)"), "{errors}");
    let (_, _, errors) = client.run("s3cret-3", &["events", "list"]);
    assert!(errors.contains("OUTBOXD_API_TOKEN") && !errors.contains("s3cret"), "{errors}");
    let (_, _, errors) = client.run("s3cret-1", &["events", "show", ID]);
    assert!(errors.contains(ID) && errors.contains("(event-not-found)"), "{errors}");
    let (_, _, errors) = client.run("s3cret-1", &["events", "list", "--outbox", "other"]);
    assert!(errors.contains("(outbox-not-found)"), "{errors}");
}

#[test]
fn a_token_comes_from_a_file_and_the_flag_before_the_variable() {
    let program = with_dead_letters(TOKENS);
    let service = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    let url = format!("http://{}", service.ready_address());
    let elsewhere = Program::with_settings("");
    elsewhere.write("token", "s3cret-1\n");
    let arguments = ["dead-letters", "list", "--json", "--server", &url, "--token-file", "token"];
    let variables = [("OUTBOXD_URL", "http://127.0.0.1:1"), ("OUTBOXD_API_TOKEN", "wrong")];
    let output = elsewhere.run_with_environment(&arguments, &variables);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn who_is_to_be_asked_is_said_once_and_clearly() {
    let program = Program::migrated("");
    let complaint = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = program.run_with_environment(arguments, variables);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let database = ["events", "list", "--database-url", "sqlite://outboxd.db"];
    let both = [&database[..], &["--server", "http://127.0.0.1:1"]].concat();
    assert_eq!(complaint(&both, &[]).0, Some(2));
    assert_eq!(
        complaint(&database, &[("OUTBOXD_URL", "http://127.0.0.1:1")]).0,
        Some(0),
        "a flag comes before a variable"
    );
    assert_eq!(complaint(&["events", "list", "--server", "localhost:8080"], &[]).0, Some(2));
    assert_eq!(complaint(&["events", "list", "--token-file", "x"], &[]).0, Some(2));
    let (code, text) = complaint(&["events", "list", "--server", "http://127.0.0.1:1"], &[]);
    assert!(code == Some(1) && text.contains("http://127.0.0.1:1/ cannot be asked"), "{text}");
    // These two belong to the client; the service does not take them for settings.
    let variables = [("OUTBOXD_URL", "http://127.0.0.1:1"), ("OUTBOXD_API_TOKEN", "x")];
    assert_eq!(complaint(&["config", "check"], &variables).0, Some(0));
}
