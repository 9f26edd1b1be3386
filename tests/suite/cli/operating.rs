//! Events and dead letters by command, straight on the database.

use serde_json::{Value, json};

use super::*;

/// Dead letters of two types: `a.b` twice, `a.c` three times.
pub fn with_dead_letters(settings: &str) -> Program {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let route = format!("{settings}[[route]]\nname = \"all\"\ntypes = [\"a.*\"]\nurl = \"http://{closed}/\"\n");
    let program = Program::migrated(&route);
    for (number, event_type) in ["a.b", "a.c", "a.b", "a.c", "a.c"].iter().enumerate() {
        let id = format!("0197a000-0000-7000-8000-00000000000{number}");
        program.succeed(&["enqueue", event_type, "{}", "--id", &id, "--max-attempts", "1"]);
    }
    assert_eq!(program.json(&["process"])["dead_lettered"], 5);
    program
}

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn events_are_listed_with_filters_and_from_a_cursor_on() {
    let program = with_dead_letters("");
    program.succeed(&["enqueue", "b", "{}", "--subject", "invoice/42"]);
    let list = |arguments: &[&str]| program.json(&[&["events", "list", "--json"], arguments].concat());
    assert_eq!(list(&["--status", "dead_letter", "--type", "a.b"])["data"].as_array().unwrap().len(), 2);
    assert_eq!(list(&["--subject", "invoice/42"])["data"][0]["type"], "b");
    assert_eq!(list(&["--created-before", "2020-01-01T00:00:00Z"])["data"], json!([]));
    let first = list(&["--order", "asc", "--limit", "4"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = list(&["--order", "asc", "--limit", "4", "--cursor", cursor]);
    assert_eq!((ids(&first).len(), ids(&second).len(), &second["next_cursor"]), (4, 2, &Value::Null));
    assert!(program.fail(&["events", "list", "--cursor", cursor]).contains("cursor"), "of another order");
}

#[test]
fn without_json_there_are_tables_for_people() {
    let program = with_dead_letters("");
    let page = program.succeed(&["dead-letters", "list", "--limit", "2"]);
    let lines: Vec<&str> = page.lines().collect();
    assert!(lines[0].starts_with("id ") && lines[1].contains("dead_letter  a."), "{page}");
    assert!(lines[3].starts_with("there is more: --cursor "), "{page}");
    assert_eq!(program.succeed(&["events", "list", "--type", "none"]).trim_end(), "no events");
    let event = program.succeed(&["events", "show", "0197a000-0000-7000-8000-000000000000", "--attempts"]);
    assert!(event.contains("status      dead_letter\n") && event.contains("\nattempt 1 "), "{event}");
}

#[test]
fn a_pending_event_is_cancelled_with_a_reason() {
    let program = Program::migrated("");
    program.succeed(&["enqueue", "a", "1", "--id", ID]);
    let event = program.json(&["events", "cancel", ID, "--reason", "wrong order", "--json"]);
    assert_eq!((&event["status"], &event["last_error"]), (&json!("skipped"), &json!("wrong order")));
    let output = program.run_with_environment(&["events", "show", ID, "--attempts", "--json"], &[]);
    let event: Value = serde_json::from_slice(&output.stdout).unwrap();
    let line = &event["actions_log"][0];
    assert_eq!(
        (&line["action"], &line["actor"], &line["note"]),
        (&json!("cancel"), &json!("cli"), &json!("wrong order"))
    );
    program.succeed(&["enqueue", "a", "1", "--id", "0197a000-0000-7000-8000-000000000001"]);
    program.succeed(&["events", "cancel", ID]);
    assert!(program.fail(&["events", "cancel", "0197a000-0000-7000-8000-000000000009"]).contains("no event"));
}

#[test]
fn many_dead_letters_are_requeued_by_a_filter_until_none_is_left() {
    let program = with_dead_letters("");
    let bulk = |arguments: &[&str]| program.json(&[&["dead-letters", "requeue", "--json"], arguments].concat());
    let counted = bulk(&["--type", "a.c", "--dry-run", "--limit", "2", "--all"]);
    assert_eq!((&counted["matched"], &counted["changed"], &counted["more"]), (&json!(3), &json!(0), &json!(false)));
    let some = bulk(&["--type", "a.c", "--limit", "1"]);
    assert_eq!((&some["changed"], &some["more"]), (&json!(1), &json!(true)));
    let rest = bulk(&["--type", "a.c", "--limit", "1", "--all", "--note", "receiver is back", "--spread-ms", "60000"]);
    assert_eq!((&rest["changed"], &rest["more"]), (&json!(2), &json!(false)));
    assert_eq!(ids(&program.json(&["dead-letters", "list", "--json"])).len(), 2);
    let id = rest["sample_ids"][0].as_str().unwrap();
    let output = program.run_with_environment(&["events", "show", id, "--attempts"], &[("USER", "alice")]);
    let event = String::from_utf8(output.stdout).unwrap();
    assert!(event.contains("by cli: receiver is back"), "{event}");
    assert_eq!(
        program.succeed(&["dead-letters", "requeue", "--error-contains", "connect"]).trim_end(),
        "2 dead letters were requeued"
    );
}

#[test]
fn named_dead_letters_are_discarded_together_in_the_name_of_who_did_it() {
    let program = with_dead_letters("");
    let named = ids(&program.json(&["dead-letters", "list", "--json"]));
    let arguments = ["dead-letters", "discard", &named[0], &named[1], ID, "--note", "test data"];
    let output = program.run_with_environment(&arguments, &[("USER", "alice")]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), "2 dead letters were discarded");
    let event = program.json(&["events", "show", &named[0], "--attempts", "--json"]);
    assert_eq!((&event["status"], &event["last_error"]), (&json!("skipped"), &json!("test data")));
    assert_eq!(event["actions_log"][0]["actor"], "cli (alice)");
}

#[test]
fn a_command_that_would_mean_everything_or_two_things_is_not_understood() {
    let program = Program::migrated("");
    for arguments in [
        &["dead-letters", "requeue"][..],
        &["dead-letters", "discard", "--all", "--dry-run"],
        &["dead-letters", "requeue", ID, "--type", "a"],
        &["dead-letters", "requeue", "--type", "a", "--delay-ms", "1"],
        &["dead-letters", "discard", "--type", "a", "--limit", "10001"],
        &["dead-letters", "requeue", ID, "no-id"],
        &["events", "list", "--status", "done"],
        &["events", "list", "--created-after", "yesterday"],
    ] {
        let output = program.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
