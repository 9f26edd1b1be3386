//! Settings: how the layers lie over one another, and what is refused before anything starts.

use std::fs;
use std::path::Path;

use outboxd::config::{Config, ConfigError, ServiceSettings, Sources};

const ROUTE: &str = "[[route]]\nname = \"all\"\ntypes = [\"*\"]\nhandler = \"discard\"\n";

/// The settings in a working folder with this `outboxd.toml` and this environment.
fn service(file: &str, environment: &[(&str, &str)]) -> Result<ServiceSettings, ConfigError> {
    read(file, environment)?.service()
}

fn read(file: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("outboxd.toml"), file).unwrap();
    Config::read(&sources(folder.path(), environment))
}

fn sources(folder: &Path, environment: &[(&str, &str)]) -> Sources {
    Sources {
        working_folder: folder.to_owned(),
        environment: environment.iter().copied().collect(),
        ..Sources::default()
    }
}

/// Asserts that the settings are refused with a text that holds each of `parts`.
fn refused(file: &str, environment: &[(&str, &str)], parts: &[&str]) -> String {
    let problem = service(file, environment).err().expect(file).to_string();
    for part in parts {
        assert!(problem.contains(part), "{part:?} is missing in: {problem}");
    }
    problem
}

fn route(lines: &str) -> String {
    format!("[[route]]\nname = \"a\"\ntypes = [\"a\"]\nurl = \"https://a.example/in\"\n{lines}\n")
}

#[test]
fn each_layer_lies_over_the_ones_before_it() {
    let file = "[server]\nlisten = \"127.0.0.1:1001\"\nshutdown_grace = \"1s\"\n[run]\nconcurrency = 7\n";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("outboxd.toml"), file).unwrap();
    let environment = [("OUTBOXD_SERVER__LISTEN", "127.0.0.1:1002"), ("OUTBOXD_RUN__CONCURRENCY", "9")];

    let from_environment = Config::read(&sources(folder.path(), &environment)).unwrap().service().unwrap();
    let flags = Sources { listen: Some("127.0.0.1:1003".to_owned()), ..sources(folder.path(), &environment) };
    let from_flag = Config::read(&flags).unwrap().service().unwrap();

    assert_eq!(from_environment.listen.port(), 1002);
    assert_eq!(from_environment.processor.concurrency, 9);
    assert_eq!(from_environment.shutdown_grace.as_secs(), 1);
    assert_eq!(from_flag.listen.port(), 1003);
}

#[test]
fn the_database_url_comes_from_a_variable_a_file_or_a_flag() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("url");
    fs::write(&secret, "sqlite://from-file.db\n").unwrap();
    let path = secret.to_str().unwrap();
    for (variable, value, url) in [
        ("DATABASE_URL", "sqlite://a.db", "sqlite://a.db"),
        ("OUTBOXD_DATABASE_URL", "sqlite://b.db", "sqlite://b.db"),
        ("DATABASE_URL_FILE", path, "sqlite://from-file.db"),
        ("OUTBOXD_DATABASE_URL_FILE", path, "sqlite://from-file.db"),
    ] {
        assert_eq!(read("database_url = \"sqlite://file.db\"", &[(variable, value)]).unwrap().store().url, url);
    }
    let both = [("DATABASE_URL", "sqlite://a.db"), ("OUTBOXD_DATABASE_URL", "sqlite://b.db")];
    refused("", &both, &["database_url", "DATABASE_URL", "OUTBOXD_DATABASE_URL", "keep one"]);
    let flag = Sources { database_url: Some("sqlite://c.db".to_owned()), ..sources(folder.path(), &both) };
    assert_eq!(Config::read(&flag).unwrap().store().url, "sqlite://c.db");
}

#[test]
fn routes_and_tokens_can_stand_in_the_environment() {
    let routes =
        r#"[{ name = "a", types = ["a.*"], url = "http://a/in" }, { name = "b", types = ["*"], handler = "log" }]"#;
    let tokens = r#"[{ name = "t", scopes = ["read"], value_env = "T" }]"#;
    let environment = [("OUTBOXD_ROUTE", routes), ("OUTBOXD_TOKEN", tokens), ("T", "s3cret")];
    let service = service("", &environment).unwrap();
    assert_eq!(service.registry.route_for("a.b").unwrap().name, "a");
    assert_eq!(service.api.tokens.len(), 1);
}

#[test]
fn a_file_that_was_named_must_exist() {
    let sources = Sources { file: Some("/nowhere/outboxd.toml".into()), ..Sources::default() };
    let problem = Config::read(&sources).err().unwrap().to_string();
    assert!(problem.contains("--config") && problem.contains("/nowhere/outboxd.toml"), "{problem}");
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_valid_one() {
    refused("[server]\nlisten_on = \"x\"", &[], &["server", "listen_on", "did you mean \"listen\"", "outboxd.toml"]);
    refused("[sever]\n", &[], &["sever", "did you mean \"server\""]);
    refused(&route("tmeout = \"3s\""), &[], &["route.0.tmeout: unknown key", "timeout"]);
    refused(&route("retry = { bse = \"1s\" }"), &[], &["retry", "bse", "base"]);
    refused("", &[("OUTBOXD_SERVER__LISTN", "x")], &["OUTBOXD_SERVER__LISTN", "OUTBOXD_SERVER__LISTEN"]);
}

#[test]
fn settings_that_would_do_nothing_yet_are_unknown() {
    for line in ["max_concurrency = 1", "rate_limit = { events = 1, per = \"1s\" }", "breaker = {}"] {
        refused(&route(line), &[], &["unknown key"]);
    }
    refused(&route("format = \"cloudevents\""), &[], &["format", "cloudevents", "not available yet", "payload"]);
}

#[test]
fn a_variable_of_a_kubernetes_service_is_no_setting() {
    let environment = [("OUTBOXD_SERVICE_HOST", "10.0.0.1"), ("OUTBOXD_PORT", "tcp://10.0.0.1:80")];
    assert!(service("", &environment).is_ok());
}

#[test]
fn values_of_the_wrong_type_or_out_of_range_name_key_value_and_what_is_valid() {
    refused("[server]\nshutdown_grace = \"soon\"", &[], &["server.shutdown_grace", "soon", "30s"]);
    refused("[server]\nshutdown_grace = 30", &[], &["server.shutdown_grace", "30", "duration"]);
    refused("[poller]\ninterval = \"never\"", &[], &["poller.interval", "never", "\"off\""]);
    refused("[run]\nconcurrency = 0", &[], &["run.concurrency", "0", "1 to 10000"]);
    refused("", &[("OUTBOXD_RUN__CONCURRENCY", "many")], &["run.concurrency", "many", "OUTBOXD_RUN__CONCURRENCY"]);
    refused("[run]\nattempt_log = \"some\"", &[], &["run.attempt_log", "some", "failures"]);
    refused("[database]\nmax_connections = 1001", &[], &["database.max_connections", "1001", "2 to 1000"]);
    for url in ["", "collector:4318", "http://user:hunter2@collector:4318"] {
        let text = format!("[telemetry]\notlp_endpoint = \"{url}\"");
        let problem = refused(&text, &[], &["telemetry.otlp_endpoint", "http://collector:4318"]);
        assert!(!problem.contains("hunter2"), "{problem}");
    }
    refused("[server]\nmax_body_bytes = 10", &[], &["server.max_body_bytes", "10", "max_payload_bytes"]);
    refused("[server]\nlisten = \"8080\"", &[], &["server.listen", "8080", "127.0.0.1:8080"]);
    refused("[log]\nlevel = \"loud\"", &[], &["log.level", "loud", "info"]);
    refused("database_url = \"mysql://u:s3cret@db\"", &[], &["database_url", "postgres://"]);
    refused(&route("timeout = \"0s\""), &[], &["timeout", "0s"]);
    refused(&route("dead_letter_on = [42]"), &[], &["dead_letter_on", "42", "300 to 599"]);
    refused(&route("dead_letter_on = [200]"), &[], &["dead_letter_on", "200", "300 to 599"]);
    let both =
        refused(&route("dead_letter_on = [204]\nheaders = { host = \"x\" }"), &[], &["2 settings", "204", "host"]);
    assert_eq!(both.matches("204").count(), 1, "{both}");
    refused("[retention]\ncompleted = \"4000d\"", &[], &["retention.completed", "\"1s\" to \"3650d\""]);
    refused(&route("max_defer_age = \"0s\""), &[], &["max_defer_age", "\"1s\" to \"3650d\""]);
    refused(&route("headers = { host = \"x\" }"), &[], &["headers", "host"]);
}

#[test]
fn what_is_no_number_is_told_which_numbers_are_valid() {
    for (file, valid) in [
        ("[run]\nconcurrency = \"8\"".to_owned(), "run.concurrency: \"8\""),
        ("[run]\nconcurrency = -1".to_owned(), "expected a whole number, 1 to 10000"),
        ("[database]\nmax_connections = 2.5".to_owned(), "expected a whole number, 2 to 1000"),
        ("[server]\nmax_payload_bytes = \"1M\"".to_owned(), "expected a whole number, 1 to 67108864"),
        ("[database]\npooler = \"yes\"".to_owned(), "expected true or false"),
        (route("dead_letter_on = [70000]"), "expected a whole number, 300 to 599"),
        (route("retry = { factor = \"two\" }"), "expected a number, 1 to 100"),
        (route("retry = { jitter = nan }"), "NaN is out of range: valid are 0 to 1"),
    ] {
        refused(&file, &[], &[valid]);
    }
}

#[test]
fn every_problem_is_named_at_once() {
    let file = "[run]\nconcurrency = 0\n[server]\nlisten = \"x\"\n[log]\nlevel = \"loud\"";
    refused(file, &[], &["3 settings", "run.concurrency", "server.listen", "log.level"]);
}

#[test]
fn a_secret_has_exactly_one_source_and_is_not_empty() {
    let token = |lines: &str| format!("[[token]]\nname = \"t\"\nscopes = [\"read\"]\n{lines}");
    refused(&token("value = \"s3cret\"\nvalue_env = \"T\""), &[("T", "x")], &["token.0", "two sources"]);
    refused(&token(""), &[], &["token.0", "value_env", "value_file"]);
    refused(&token("value = \"\""), &[], &["token.0", "empty"]);
    refused(&token("value_env = \"T\""), &[], &["token.0", "T is not set"]);
    refused(&token("value_env = \"T\""), &[("T", "\n")], &["token.0", "T is empty"]);
    refused(&token("value_file = \"/nowhere/t\""), &[], &["token.0", "/nowhere/t"]);
    refused("", &[("CRON_SECRET", "")], &["CRON_SECRET", "empty"]);
    refused("", &[("DATABASE_URL", "")], &["DATABASE_URL", "empty"]);
    refused(&route("secrets = [\"\"]"), &[], &["route.0", "secrets", "empty"]);
    refused(&route("secrets_env = [\"S\"]"), &[], &["route.0", "S is not set"]);
    refused(&route("secrets_env = [\"S\"]\nsecret_files = [\"f\"]"), &[("S", "x")], &["route.0", "two sources"]);
}

#[test]
fn a_token_with_an_unknown_scope_or_a_secret_of_another_is_refused() {
    let token =
        |name: &str, scope: &str| format!("[[token]]\nname = \"{name}\"\nscopes = [\"{scope}\"]\nvalue = \"s3cret\"\n");
    refused(&token("t", "everything"), &[], &["scopes", "everything", "process"]);
    refused(&format!("{}{}", token("a", "read"), token("b", "read")), &[], &["\"a\"", "\"b\"", "same secret"]);
    refused(&token("cron-secret", "read"), &[("CRON_SECRET", "other")], &["cron-secret", "names must differ"]);
}

#[test]
fn a_refusal_never_repeats_a_secret() {
    for (file, environment) in [
        ("[[token]]\nname = \"t\"\nscopes = [\"read\"]\nvalue = \"s3cret with spaces\"", vec![]),
        ("[[token]]\nname = \"t\"\nscopes = [\"read\"]\nvalue = [\"s3cret\"]", vec![]),
        ("[[token]]\nname = \"t\"\nvalue = \"s3cret\" x", vec![]),
        ("database_url = \"mysql://u:s3cret@db\"", vec![]),
        ("", vec![("DATABASE_URL", "mysql://u:s3cret@db")]),
        ("[[route]]\nname = \"a\"\ntypes = [\"a\"]\nurl = \"https://a\"\nsecrets = \"s3cret\"", vec![]),
        ("[[route]]\nname = \"a\"\ntypes = [\"a\"]\nurl = \"https://a\"\nsecrets = [\"s3cret\"]", vec![]),
        ("[[route]]\nname = \"a\"\ntypes = [\"a\"]\nurl = \"https://a\"\nheaders = \"s3cret\"", vec![]),
        ("[[route]]\nname = \"a\"\ntypes = [\"a\"]\nurl = \"ftp://u:s3cret@a\"", vec![]),
    ] {
        let problem = refused(file, &environment, &[]);
        assert!(!problem.contains("s3cret"), "{problem}");
    }
}

#[test]
fn a_fixed_lease_must_exceed_the_longest_timeout_by_a_second() {
    let file = |lease: &str| format!("[run]\nlease = \"{lease}\"\n{}", route("timeout = \"30s\""));
    refused(&file("30s"), &[], &["run.lease", "30s", "31s", "auto"]);
    assert!(service(&file("31s"), &[]).is_ok());
    assert!(service(&file("auto"), &[]).is_ok());
}

#[test]
fn without_a_token_only_loopback_is_allowed_unless_told_otherwise() {
    let open = "[server]\nlisten = \"0.0.0.0:8080\"";
    refused(open, &[], &["server.listen", "0.0.0.0:8080", "--insecure-no-auth", "loopback"]);
    assert!(read(open, &[]).unwrap().without_auth(true).service().is_ok());
    assert!(service(open, &[("CRON_SECRET", "s3cret")]).is_ok());
    assert!(service("[server]\nlisten = \"[::1]:8080\"", &[]).is_ok());
}

#[test]
fn patterns_must_be_valid_and_stand_once() {
    refused("[[route]]\nname = \"a\"\ntypes = [\"a*\"]\nhandler = \"log\"", &[], &["types", "a*", "prefix.*"]);
    refused("[[route]]\nname = \"a\"\ntypes = []\nhandler = \"log\"", &[], &["\"a\"", "types"]);
    refused(&format!("{ROUTE}{}", ROUTE.replace("all", "other")), &[], &["\"*\"", "\"all\"", "\"other\""]);
    refused(&format!("{ROUTE}{}", ROUTE.replace('*', "b")), &[], &["\"all\"", "names must differ"]);
}

#[test]
fn a_route_has_either_a_url_or_a_handler() {
    refused("[[route]]\nname = \"a\"\ntypes = [\"a\"]", &[], &["url", "handler", "exactly one"]);
    refused(&route("handler = \"log\""), &[], &["url", "handler", "exactly one"]);
    refused("[[route]]\nname = \"a\"\ntypes = [\"a\"]\nhandler = \"print\"", &[], &["print", "\"log\"", "\"discard\""]);
}

#[test]
fn the_report_masks_secrets_and_tells_horizons_and_warnings() {
    let file = format!(
        "{ROUTE}{}",
        route(
            "headers = { authorization = \"Bearer s3cret\" }\nsecrets = [\"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD\"]"
        )
    );
    let environment = [("DATABASE_URL", "postgres://app:s3cret@db/app"), ("CRON_SECRET", "s3cret")];
    let report = read(&file, &environment).unwrap().report().unwrap();
    assert!(!report.contains("s3cret") && !report.contains("C2FV"), "{report}");
    for part in ["postgres://app:***@db/app", "max_runtime_cap", "all (*): 17m 2s", "DISCARDS", "can be guessed"] {
        assert!(report.contains(part), "{part:?} is missing in: {report}");
    }
    assert!(report.parse::<toml::Table>().is_ok(), "{report}");
}
