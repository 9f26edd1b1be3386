//! Settings of outboxes by description: what they become, and what is refused before any table is looked at.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use outboxd::config::{Config, ConfigError, ServiceSettings, Sources};
use outboxd::event::Status;
use outboxd::store::description::TableName;

const OUTBOX: &str = r#"
[[outbox]]
name = "notifications"
table = 'public."NotificationDelivery"'
[outbox.columns]
id = "id"
event_type = "kind"
payload = "payload"
status = "status"
attempts = "attempts"
available_at = "availableAt"
locked_at = "claimedAt"
created_at = "createdAt"
[outbox.status]
pending = "PENDING"
processing = "PROCESSING"
completed = "DELIVERED"
dead_letter = "FAILED"
"#;

fn read(file: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("outboxd.toml"), file).unwrap();
    let environment = environment.iter().copied().collect();
    Config::read(&Sources { working_folder: folder.path().to_owned(), environment, ..Sources::default() })
}

fn service(file: &str) -> Result<ServiceSettings, ConfigError> {
    read(file, &[])?.service()
}

fn refused(file: &str, parts: &[&str]) {
    let problem = service(file).err().expect(file).to_string();
    for part in parts {
        assert!(problem.contains(part), "{part:?} is missing in: {problem}");
    }
}

/// The outbox with more lines below `[[outbox]]`.
fn with(lines: &str) -> String {
    OUTBOX.replace("[outbox.columns]", &format!("{lines}\n[outbox.columns]"))
}

/// The outbox with more lines below `[outbox.columns]`.
fn with_column(lines: &str) -> String {
    OUTBOX.replace("[outbox.status]", &format!("{lines}\n[outbox.status]"))
}

/// The outbox with more lines below `[outbox.status]`.
fn with_status(lines: &str) -> String {
    format!("{OUTBOX}{lines}\n")
}

/// The outbox without the line that begins so.
fn without(key: &str) -> String {
    OUTBOX.lines().filter(|line| !line.starts_with(key)).flat_map(|line| [line, "\n"]).collect()
}

fn route(name: &str, lines: &str) -> String {
    format!("[[route]]\nname = \"{name}\"\ntypes = [\"*\"]\nhandler = \"discard\"\n{lines}\n")
}

#[test]
fn what_is_left_out_has_the_documented_defaults() {
    let service = service(OUTBOX).unwrap();
    assert!(service.default_outbox);
    let [outbox] = service.adopted.as_slice() else { panic!("one outbox") };
    let description = &outbox.description;
    let table = TableName { schema: Some("public".to_owned()), table: "NotificationDelivery".to_owned() };
    assert_eq!((&description.name[..], &description.table), ("notifications", &table));
    assert_eq!((description.max_attempts, &description.time_zone[..]), (10, "UTC"));
    assert_eq!((description.lease, outbox.retention), (Duration::from_secs(600), None));
    let every_end = BTreeSet::from([Status::Completed, Status::DeadLetter, Status::Skipped]);
    assert_eq!(description.processed_at_on, every_end);
    assert_eq!((&description.order_by, &description.filter, &description.fixed_type), (&None, &None, &None));
    assert_eq!(description.columns.event_type.as_deref(), Some("kind"));
    assert_eq!((&description.labels.completed[..], &description.labels.skipped), ("DELIVERED", &None));
}

#[test]
fn everything_that_is_described_is_handed_over() {
    let lines = "max_attempts = 5\nlease = \"1h\"\norder_by = \"createdAt\"\nprocessed_at_on = [\"completed\"]\n\
                 filter = '\"tenant\" = 7'\ntime_zone = \"Europe/Berlin\"";
    let file = with(lines).replace("[outbox.status]", "processed_at = \"deliveredAt\"\n[outbox.status]\nskipped = 4");
    let service = service(&format!("{file}[outbox.retention]\ncompleted = \"7d\"\n")).unwrap();
    let outbox = &service.adopted[0];
    let description = &outbox.description;
    assert_eq!((description.max_attempts, description.lease), (5, Duration::from_secs(3600)));
    assert_eq!(description.order_by.as_deref(), Some("createdAt"));
    assert_eq!(description.processed_at_on, BTreeSet::from([Status::Completed]));
    assert_eq!(description.filter.as_deref(), Some("\"tenant\" = 7"));
    assert_eq!(description.time_zone, "Europe/Berlin");
    assert_eq!(description.labels.skipped.as_deref(), Some("4"));
    let retention = outbox.retention.unwrap();
    assert_eq!(retention.completed, Duration::from_secs(7 * 86_400));
    assert!(retention.skipped > Duration::from_secs(100 * 366 * 86_400), "what is not said is kept");
}

#[test]
fn names_are_distinct_and_stand_to_their_pattern() {
    for name in ["", "Orders", "a b", "a.b", &"x".repeat(65)] {
        refused(&OUTBOX.replace("\"notifications\"", &format!("{name:?}")), &["name", &format!("{name:?}"), "a-z 0-9"]);
    }
    refused(&OUTBOX.replace("\"notifications\"", "\"default\""), &["\"default\"", "default outbox"]);
    refused(&OUTBOX.repeat(2), &["outbox.1 (\"notifications\").name", "names must differ"]);
}

#[test]
fn tables_columns_and_labels_that_could_be_none_are_refused() {
    refused(&OUTBOX.replace("public.", "a.b."), &["outbox.0 (\"notifications\").table", "app.orders"]);
    refused(&OUTBOX.replace("\"payload\"", "\"\""), &["columns.payload", "1 to 63 bytes"]);
    refused(&with(&format!("order_by = {:?}", "x".repeat(64))), &["order_by", "1 to 63 bytes"]);
    refused(&OUTBOX.replace("\"payload\"", "'\"payload\"'"), &["columns.payload", "without quotes"]);
    refused(&with_column("last_error = \"kind\""), &["columns.last_error", "\"kind\" is event_type already"]);
    refused(&OUTBOX.replace("\"FAILED\"", "\"DELIVERED\""), &["status.dead_letter", "completed already"]);
    refused(&OUTBOX.replace("\"FAILED\"", "\"\""), &["status.dead_letter", "1 to 200"]);
    refused(&OUTBOX.replace("\"FAILED\"", "true"), &["status.dead_letter", "true", "text or as a whole number"]);
    refused(&without("locked_at"), &["columns", "locked_at", "missing"]);
    refused(&with_column("colour = \"x\""), &["columns.colour", "unknown key"]);
    assert!(service(&OUTBOX.replace("\"createdAt\"", "\"availableAt\"")).is_ok());
}

#[test]
fn an_outbox_has_either_a_column_of_types_or_a_fixed_type() {
    refused(&with("fixed_type = \"a\""), &["columns.event_type", "exactly one"]);
    refused(&without("event_type"), &["columns.event_type", "fixed_type", "exactly one"]);
    let fixed = |name: &str| without("event_type").replace("table =", &format!("fixed_type = \"{name}\"\ntable ="));
    refused(&fixed("a b"), &["fixed_type", "\"a b\"", "1 to 200 characters"]);
    let service = service(&fixed("notification")).unwrap();
    assert_eq!(service.adopted[0].description.fixed_type.as_deref(), Some("notification"));
}

#[test]
fn values_out_of_range_are_refused_with_what_is_valid() {
    refused(&with("max_attempts = 0"), &["outbox.0 (\"notifications\").max_attempts", "0", "1 to 100"]);
    refused(&with("max_attempts = \"many\""), &["max_attempts", "many", "a whole number, 1 to 100"]);
    refused(&with("lease = \"1s\""), &["lease", "1s", "\"2s\" to \"7d\""]);
    refused(&with("time_zone = \"UTC'\""), &["time_zone", "Europe/Berlin"]);
    refused(&with("filter = \"a = 1; DELETE\""), &["filter", "semicolon"]);
    refused(&with("filter = \"true) OR (true\""), &["filter", "parenthesis"]);
    refused(&with("filter = \" \""), &["filter", "empty"]);
}

#[test]
fn the_ends_that_write_processed_at_are_final_and_have_a_column() {
    let with_column =
        |lines: &str| with(lines).replace("[outbox.status]", "processed_at = \"deliveredAt\"\n[outbox.status]");
    refused(&with("processed_at_on = [\"completed\"]"), &["processed_at_on", "columns.processed_at"]);
    refused(&with_column("processed_at_on = [\"pending\"]"), &["\"pending\"", "\"completed\", \"dead_letter\""]);
    refused(&with_column("processed_at_on = []"), &["processed_at_on", "empty"]);
    refused(&with_column("processed_at_on = [\"skipped\"]"), &["processed_at_on", "status.skipped"]);
    assert!(service(&with_column("processed_at_on = [\"completed\", \"dead_letter\"]")).is_ok());
}

#[test]
fn retention_needs_to_know_how_old_an_event_is() {
    let retention = "[outbox.retention]\ncompleted = \"7d\"";
    refused(&with_status(retention), &["retention.completed", "columns.processed_at"]);
    let aged = with_column("processed_at = \"deliveredAt\"");
    assert!(service(&format!("{aged}{retention}")).unwrap().adopted[0].retention.is_some());
    assert!(service(&format!("{aged}[outbox.retention]")).unwrap().adopted[0].retention.is_none());
    refused(&format!("{aged}[outbox.retention]\ncompleted = \"0s\""), &["retention.completed", "0s", "\"3650d\""]);
    let only_dead = aged.replace("table =", "processed_at_on = [\"dead_letter\"]\ntable =");
    let warned = |file: &str| {
        let config = read(file, &[]).unwrap();
        config.warnings(&config.service().unwrap()).join("\n")
    };
    let of_completed = warned(&format!("{only_dead}{retention}"));
    assert!(of_completed.contains("retention.completed") && of_completed.contains("processed_at_on"), "{of_completed}");
    let of_skipped = warned(&format!("{aged}[outbox.retention]\nskipped = \"7d\""));
    assert!(of_skipped.contains("retention.skipped does nothing"), "{of_skipped}");
    assert!(!warned(&format!("{aged}{retention}")).contains("retention"));
}

#[test]
fn each_outbox_has_routes_of_its_own() {
    let second = OUTBOX.replace("\"notifications\"", "\"hooks\"");
    let routes = [
        route("a", ""),
        route("b", "outbox = \"notifications\""),
        route("c", "outbox = \"hooks\""),
        route("d", "outbox = \"default\"").replace("\"*\"", "\"d\""),
    ];
    let service = service(&format!("{OUTBOX}{second}{}", routes.concat())).unwrap();
    let names = |registry: &outboxd::handler::Registry| -> Vec<String> {
        registry.routes().iter().map(|route| route.name.clone()).collect()
    };
    assert_eq!(names(&service.registry), ["a", "d"]);
    assert_eq!(names(&service.adopted[0].registry), ["b"]);
    assert_eq!(names(&service.adopted[1].registry), ["c"]);
}

#[test]
fn a_pattern_stands_once_in_an_outbox_and_a_name_once_in_all() {
    let served = "outbox = \"notifications\"";
    let twice = format!("{OUTBOX}{}{}", route("a", served), route("b", served));
    refused(&twice, &["\"a\" and \"b\" both take \"*\"", "in outbox \"notifications\""]);
    refused(&format!("{OUTBOX}{}{}", route("a", ""), route("a", served)), &["named \"a\"", "names must differ"]);
}

#[test]
fn a_route_of_an_outbox_that_is_none_is_refused() {
    let stray = format!("{OUTBOX}{}", route("a", "outbox = \"notification\""));
    refused(&stray, &["route.0 (\"a\").outbox", "did you mean \"notifications\"", "\"default\", \"notifications\""]);
    let only = |routes: &str| format!("default_outbox = false\n{OUTBOX}{routes}");
    refused(&only(&route("a", "")), &["route.0 (\"a\").outbox", "missing", "valid are \"notifications\""]);
    refused(&only(&route("a", "outbox = \"default\"")), &["no default outbox", "valid are \"notifications\""]);
    assert!(!service(&only(&route("a", "outbox = \"notifications\""))).unwrap().default_outbox);
    refused("default_outbox = false", &["default_outbox", "no outbox at all"]);
}

#[test]
fn the_lease_of_an_outbox_exceeds_the_timeouts_of_its_own_routes() {
    let file = |lease: &str, lines: &str| format!("{}{}", with(&format!("lease = \"{lease}\"")), route("a", lines));
    let served = "outbox = \"notifications\"\ntimeout = \"30s\"";
    refused(&file("30s", served), &["outbox.0 (\"notifications\").lease", "30s", "route.0", "at least \"31s\""]);
    assert!(service(&file("31s", served)).is_ok());
    assert!(service(&file("30s", "timeout = \"30s\"")).is_ok());
    assert!(service(&format!("[run]\nlease = \"5s\"\n{}", file("31s", served))).is_ok());
}

#[test]
fn outboxes_can_stand_in_the_environment() {
    let outboxes = r#"[{ name = "a", table = "app.\"Event\"", fixed_type = "a.b",
        columns = { id = "id", payload = "p", status = "s", attempts = "n", available_at = "d", locked_at = "l",
                    created_at = "c" },
        status = { pending = 0, processing = 1, completed = 2, dead_letter = -1 } }]"#;
    let environment = [
        ("OUTBOXD_OUTBOX", outboxes),
        ("OUTBOXD_DEFAULT_OUTBOX", "false"),
        ("OUTBOXD_ROUTE", r#"[{ name = "a", outbox = "a", types = ["*"], handler = "log" }]"#),
    ];
    let service = read("", &environment).unwrap().service().unwrap();
    let description = &service.adopted[0].description;
    assert_eq!(description.table.table, "Event");
    assert_eq!((&description.labels.pending[..], &description.labels.dead_letter[..]), ("0", "-1"));
    assert!(!service.default_outbox);
}

#[test]
fn the_report_shows_each_outbox_with_its_routes_and_what_is_missing() {
    let second = OUTBOX.replace("\"notifications\"", "\"hooks\"");
    let file = format!("{}{second}{}", with("max_attempts = 3"), route("bot", "outbox = \"notifications\""));
    let report = read(&file, &[]).unwrap().report().unwrap();
    for part in [
        "outbox \"notifications\": of 3 attempts\n#   bot (*): ",
        "no [[route]] serves outbox \"hooks\"",
        "no [[route]] serves the default outbox",
        "describe one table",
        "default_outbox = true",
    ] {
        assert!(report.contains(part), "{part:?} is missing in: {report}");
    }
    let shown = report.parse::<toml::Table>().unwrap();
    assert_eq!(shown["outbox"][0]["columns"]["locked_at"].as_str(), Some("claimedAt"));
}
