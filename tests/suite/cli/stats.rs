//! `outboxd stats`

use super::*;

const SETTINGS: &str =
    "[server]\nlisten = \"127.0.0.1:0\"\n[[route]]\nname = \"all\"\ntypes = [\"routed\"]\nhandler = \"discard\"\n";

#[test]
fn stats_come_from_the_database_or_from_a_server_in_the_same_form() {
    let program = Program::migrated(SETTINGS);
    assert!(program.succeed(&["stats"]).starts_with("no live events and no dead letters"));
    for event_type in ["routed", "stray", "stray"] {
        program.succeed(&["enqueue", event_type, "{}"]);
    }
    program.succeed(&["process"]);
    let of_database = program.json(&["stats", "--json"]);
    let lane = &of_database["lanes"][0];
    assert_eq!((&lane["type"], &lane["due"], &lane["routed"]), (&"stray".into(), &2.into(), &false.into()));
    assert_eq!(of_database["lanes"].as_array().unwrap().len(), 1);
    assert_eq!(of_database["last_run"]["completed"], 1, "{of_database}");
    assert_eq!(of_database["last_hour"][0]["completed"], 1, "written before the command has ended: {of_database}");
    let table = program.succeed(&["stats"]);
    assert!(table.contains("default  stray  2 ") && table.contains("NO"), "{table}");
    assert!(table.contains("by cli, claimed 1, drained"), "{table}");

    let running = program.start(&["serve"]);
    let url = format!("http://{}", running.ready_address());
    let of_server = program.json(&["stats", "--json", "--server", &url]);
    for key in ["lanes", "last_run", "last_hour"] {
        let without_age = |stats: &serde_json::Value| {
            let mut part = stats[key].clone();
            if key == "lanes" {
                part[0]["oldest_due_age_ms"] = 0.into();
            }
            part
        };
        assert_eq!(without_age(&of_server), without_age(&of_database), "{key}");
    }
    let errors = program.fail(&["stats", "--server", &url, "--outbox", "other"]);
    assert!(errors.contains("no outbox of this name"), "{errors}");
    assert!(running.terminate().success());
}

#[test]
fn without_routes_nobody_says_what_is_routed() {
    let program = Program::migrated("");
    program.succeed(&["enqueue", "a", "{}"]);
    assert_eq!(program.json(&["stats", "--json"])["lanes"][0]["routed"], serde_json::Value::Null);
    assert!(program.fail(&["stats", "--outbox", "other"]).contains("names no outbox"));
}
