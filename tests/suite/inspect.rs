//! `outbox inspect` and `doctor`, tried through the real program on tables that others have made.

use outboxd::sqlx::{self, AssertSqlSafe, Connection, PgConnection};

use crate::support::postgres::fresh_database;
use crate::support::program::Program;

/// A table as Prisma makes it: quoted names in camel case, an enum, instants of milliseconds without a zone.
const DELIVERIES: &str = r#"
CREATE TYPE "NotificationStatus" AS ENUM ('PENDING', 'PROCESSING', 'DELIVERED', 'FAILED', 'SKIPPED');
CREATE TABLE "NotificationDelivery" (
    id text PRIMARY KEY, kind text NOT NULL, "correlationId" text, payload jsonb NOT NULL,
    status "NotificationStatus" NOT NULL DEFAULT 'PENDING', attempts integer NOT NULL DEFAULT 0,
    "availableAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "claimedAt" timestamp(3), "lastError" text,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deliveredAt" timestamp(3));"#;

/// A table as Drizzle makes it, with the indexes of its own poller.
const EVENTS: &str = "
CREATE TABLE outbox_event (
    id text PRIMARY KEY, event_type text NOT NULL, payload json NOT NULL, status text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0, max_attempts integer NOT NULL DEFAULT 10,
    available_at timestamp NOT NULL DEFAULT now(), locked_at timestamp, created_at timestamp NOT NULL DEFAULT now(),
    processed_at timestamp, last_error text);
CREATE INDEX by_due ON outbox_event (status, available_at);
CREATE INDEX by_lock ON outbox_event (locked_at);
CREATE INDEX by_type ON outbox_event (event_type, created_at);
INSERT INTO outbox_event (id, event_type, payload, status, available_at, locked_at, processed_at)
SELECT n::text, 'type.' || n % 5, '{}', CASE n % 50 WHEN 0 THEN 'pending' WHEN 1 THEN 'processing' WHEN 2 THEN
       'dead_letter' ELSE 'completed' END, now() - n * interval '1 second', CASE n % 50 WHEN 1 THEN now() END,
       CASE WHEN n % 50 > 1 THEN now() END
FROM generate_series(1, 30000) AS n;
ANALYZE outbox_event;";

/// A table that nobody has described: numbers as statuses, whole seconds, bytes, no types.
const JOBS: &str = r#"
CREATE SCHEMA "Mail";
CREATE TABLE "Mail".jobs (
    job_no bigserial PRIMARY KEY, blob_data bytea NOT NULL, tenant integer NOT NULL,
    job_state smallint NOT NULL DEFAULT 0 CHECK (job_state IN (0, 1, 2, 9)), try_count smallint NOT NULL DEFAULT 0,
    next_attempt_at timestamptz(0) NOT NULL DEFAULT now(), picked_at timestamptz(0),
    inserted_at timestamptz NOT NULL DEFAULT now(), done_at timestamptz, error text);
INSERT INTO "Mail".jobs (blob_data, tenant, job_state, done_at, error) VALUES
    ('a', 1, 0, NULL, NULL), ('b', 1, 9, now(), NULL), ('c', 1, 2, NULL, 'no such mailbox');"#;

/// A database with these tables, and a program that uses it.
async fn database(tables: &str) -> (PgConnection, Program) {
    let url = fresh_database().await;
    let mut connection = PgConnection::connect(&url).await.unwrap();
    run(&mut connection, tables).await;
    (connection, Program::with_settings(&format!("database_url = {url:?}")))
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

/// What an inspection printed, and whether all was well.
fn inspect(program: &Program, table: &str) -> (String, bool) {
    let output = program.run(&["outbox", "inspect", table]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (text, output.status.success())
}

/// The proposed description, which is all that is not a comment.
fn described(text: &str) -> toml::Value {
    let settings: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    settings["outbox"][0].clone()
}

/// Does everything that was called missing.
async fn add_missing(connection: &mut PgConnection, text: &str) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("# missing: ") {
            let statement = lines.find_map(|line| line.strip_prefix("#   CREATE ")).unwrap();
            run(connection, &format!("CREATE {statement}")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_quoted_names_is_described_and_then_bounded() {
    let (mut connection, program) = database(DELIVERIES).await;
    let name = "public.\"NotificationDelivery\"";

    let (text, sound) = inspect(&program, name);

    assert!(!sound && text.contains("# claim: NOT BOUNDED"), "{text}");
    let outbox = described(&text);
    let expected: toml::Value = toml::from_str(
        r#"
        name = "notification_delivery"
        table = 'public."NotificationDelivery"'
        max_attempts = 10
        time_zone = "UTC"
        lease = "10m"
        [columns]
        id = "id"
        event_type = "kind"
        payload = "payload"
        status = "status"
        attempts = "attempts"
        available_at = "availableAt"
        locked_at = "claimedAt"
        created_at = "createdAt"
        processed_at = "deliveredAt"
        last_error = "lastError"
        subject = "correlationId"
        [status]
        pending = "PENDING"
        processing = "PROCESSING"
        completed = "DELIVERED"
        dead_letter = "FAILED"
        skipped = "SKIPPED"
        "#,
    )
    .unwrap();
    assert_eq!(outbox, expected, "{text}");

    add_missing(&mut connection, &text).await;
    let (text, sound) = inspect(&program, name);
    assert!(sound && !text.contains("# missing: "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_of_an_old_poller_are_judged_by_the_plans_of_a_filled_table() {
    let (mut connection, program) = database(EVENTS).await;

    let (text, sound) = inspect(&program, "outbox_event");

    let outbox = described(&text);
    let labels = &outbox["status"];
    assert_eq!(
        (labels["processing"].as_str(), labels["dead_letter"].as_str()),
        (Some("processing"), Some("dead_letter"))
    );
    assert_eq!((outbox["columns"]["max_attempts"].as_str(), outbox.get("max_attempts")), (Some("max_attempts"), None));
    assert!(!sound && text.contains("# survey: NOT BOUNDED") && text.contains("# settle by id: ok"), "{text}");
    let wanted = "CREATE INDEX CONCURRENTLY outbox_event_outboxd_claim ON public.outbox_event (event_type, available_at, id) \
                  WHERE status = 'pending';";
    assert!(text.contains(wanted), "{text}");
    assert!(text.contains("DROP INDEX CONCURRENTLY public.by_type;"), "{text}");

    add_missing(&mut connection, &text).await;
    run(&mut connection, "ANALYZE outbox_event").await;
    let (text, sound) = inspect(&program, "outbox_event");
    assert!(sound && text.contains("# claim: ok: "), "{text}");
    assert!(!text.contains("# missing: ") && text.contains("outbox_event_outboxd_claim"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_nobody_has_seen_is_described_with_its_guesses_marked() {
    let (mut connection, program) = database(JOBS).await;
    let name = "\"Mail\".jobs";

    let (text, _) = inspect(&program, name);

    let outbox = described(&text);
    assert_eq!((outbox["table"].as_str(), outbox["fixed_type"].as_str()), (Some(name), Some("jobs")));
    assert_eq!(
        (outbox["columns"]["id"].as_str(), outbox["columns"]["payload"].as_str()),
        (Some("job_no"), Some("blob_data"))
    );
    let labels = ["pending", "processing", "completed", "dead_letter"].map(|status| outbox["status"][status].as_str());
    assert_eq!(labels, [Some("0"), Some("1"), Some("9"), Some("2")], "{text}");
    assert!(outbox.get("time_zone").is_none(), "{text}");
    for remark in ["tenant must be given", "whole seconds", "guessed from a sample", "guessed from the order"] {
        assert!(text.contains(remark), "{remark}: {text}");
    }

    add_missing(&mut connection, &text).await;
    let (text, sound) = inspect(&program, name);
    assert!(sound, "{text}");
}

/// A table with a CHECK on its statuses, one of which is no word that is known.
const CHECKED: &str = "
CREATE TABLE mail (
    id bigserial PRIMARY KEY, event_type text NOT NULL, payload jsonb NOT NULL, attempts integer NOT NULL DEFAULT 0,
    state varchar(20) NOT NULL DEFAULT 'NEW' CHECK (state IN ('NEW', 'SENDING', 'SENT', 'BROKEN')),
    available_at timestamptz NOT NULL DEFAULT now(), locked_at timestamptz, created_at timestamptz NOT NULL DEFAULT now(),
    processed_at timestamptz, last_error text);
INSERT INTO mail (event_type, payload, state, processed_at) SELECT 'a', '1',
    CASE n % 3 WHEN 0 THEN 'BROKEN' WHEN 1 THEN 'SENT' ELSE 'NEW' END, now() FROM generate_series(1, 3000) AS n;
ANALYZE mail;";

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_a_check_allows_comes_before_an_invented_word_and_advice_is_not_taken_back() {
    let (mut connection, program) = database(CHECKED).await;
    let (text, sound) = inspect(&program, "mail");
    assert_eq!(described(&text)["status"]["dead_letter"].as_str(), Some("BROKEN"), "{text}");
    assert!(!sound, "indexes are missing: {text}");
    add_missing(&mut connection, &text).await;
    let dead = "CREATE INDEX mail_outboxd_dead ON mail (processed_at, id) WHERE state = 'BROKEN'; ANALYZE mail";
    run(&mut connection, dead).await;
    let (text, sound) = inspect(&program, "mail");
    assert!(sound && !text.contains("DROP INDEX"), "{text}");
    run(&mut connection, "TRUNCATE mail; ANALYZE mail").await;
    let (text, _) = inspect(&program, "mail");
    assert!(!text.contains("DROP INDEX"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guess_that_nothing_shows_makes_the_description_no_whole_one() {
    let free =
        CHECKED.replace("CHECK (state IN ('NEW', 'SENDING', 'SENT', 'BROKEN'))", "").replace("'BROKEN'", "'SENT'");
    let (mut connection, program) = database(&free).await;
    let (text, _) = inspect(&program, "mail");
    add_missing(&mut connection, &text).await;
    let (text, sound) = inspect(&program, "mail");
    assert!(!sound && text.contains("dead_letter = \"DEAD_LETTER\"  # ?"), "{text}");
    let output = program.run(&["outbox", "inspect", "mail"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("nothing shows what processing, dead_letter should be"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_found_is_left_to_fill_in() {
    let (_, program) = database("CREATE TABLE note (id uuid PRIMARY KEY, words text)").await;
    let (text, sound) = inspect(&program, "note");
    assert!(!sound && text.contains("# available_at = \"?\"") && text.contains("# pending = \"?\""), "{text}");
    assert_eq!(described(&text)["columns"]["id"].as_str(), Some("id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inspection_can_be_read_by_programs() {
    let (_, program) = database(EVENTS).await;
    let output = program.run(&["outbox", "inspect", "outbox_event", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(found["proposal"]["columns"]["locked_at"]["value"], "locked_at");
    assert_eq!(found["proposal"]["labels"]["completed"]["value"], "completed");
    assert_eq!(
        (&found["statements"][0]["purpose"], &found["statements"][0]["verdict"]["bounded"]),
        (&"claim".into(), &false.into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_not_there_is_told_from_those_that_are() {
    let (_, program) = database(&format!("{DELIVERIES} CREATE VIEW seen AS SELECT 1 AS id;")).await;
    let problem = program.fail(&["outbox", "inspect", "NotificationDelivery"]);
    assert!(problem.contains("public.\"NotificationDelivery\""), "{problem}");
    assert!(program.fail(&["outbox", "inspect", "unheard_of"]).contains("none with a name like it"));
    assert!(program.fail(&["outbox", "inspect", "public.seen"]).contains("public.seen is no table"));
    assert_eq!(program.run(&["outbox", "inspect", "a.b.c"]).status.code(), Some(2));
}

#[test]
fn an_inspection_needs_postgres() {
    let problem = Program::with_settings("").fail(&["outbox", "inspect", "outbox_event"]);
    assert!(problem.contains("Postgres") && problem.contains("--database-url"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_what_is_wrong_until_it_is_right() {
    let (_, program) = database("").await;

    let before = program.run(&["doctor"]);
    let text = String::from_utf8(before.stdout).unwrap();
    assert_eq!(before.status.code(), Some(1));
    assert!(text.contains("problem  ") && text.contains("outboxd migrate"), "{text}");

    program.succeed(&["migrate"]);
    let text = program.succeed(&["doctor"]);
    assert!(text.contains("ok       the schema is current") && text.contains("clock"), "{text}");
    assert!(!text.contains("problem  "), "{text}");
}

#[test]
fn doctor_tells_a_database_that_does_not_answer() {
    let program = Program::with_settings("database_url = \"postgres://app:s3cret@127.0.0.1:1/app\"");
    let output = program.run(&["doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("problem  the database is unavailable") && !text.contains("s3cret"), "{text}");
}

/// Statuses of one letter: words that would not fit are not proposed, and what is missing is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_of_one_letter_is_not_given_words() {
    let url = fresh_database().await;
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let table = "CREATE TABLE messages (
        id varchar(40) PRIMARY KEY, message_type text NOT NULL, content bytea NOT NULL, status char(1) NOT NULL DEFAULT 'N',
        attempt_count bigint DEFAULT 0, visible_at timestamptz(0) NOT NULL DEFAULT now(), taken_at timestamptz(0),
        created timestamptz(0) NOT NULL DEFAULT now(), done_at timestamptz(0), last_err varchar(100));
        INSERT INTO messages (id, message_type, content) VALUES ('1', 'mail', '{}')";
    sqlx::raw_sql(table).execute(&mut connection).await.unwrap();
    let program = Program::with_settings(&format!("database_url = \"{url}\"\n"));
    let output = program.run(&["outbox", "inspect", "messages"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    for part in ["pending = \"N\"", "# processing = \"?\"", "last_error = \"last_err\"", "4 s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_tells_labels_that_a_check_refuses_and_statuses_that_no_label_names() {
    let url = fresh_database().await;
    let mut connection = PgConnection::connect(&url).await.unwrap();
    run(&mut connection, CHECKED).await;
    let settings = |dead: &str| {
        format!(
            r#"database_url = {url:?}
            [[outbox]]
            name = "mail"
            table = "mail"
            max_attempts = 3
            lease = "10m"
            columns = {{ id = "id", event_type = "event_type", payload = "payload", status = "state", attempts = "attempts", available_at = "available_at", locked_at = "locked_at", created_at = "created_at" }}
            status = {{ pending = "NEW", processing = "SENDING", completed = "SENT", dead_letter = "{dead}" }}
            [[route]]
            name = "mail"
            outbox = "mail"
            types = ["*"]
            url = "http://127.0.0.1:9/""#
        )
    };
    let program = Program::migrated(&settings("DEAD"));
    let output = program.run(&["doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("problem  outbox \"mail\": a CHECK of \"mail\" refuses \"DEAD\", the label of dead_letter"),
        "{text}"
    );
    assert!(text.contains("statuses that no label names: BROKEN"), "{text}");
    assert_eq!(output.status.code(), Some(1));

    run(&mut connection, "UPDATE mail SET state = 'SENT'; CREATE INDEX ON mail (created_at, id)").await;
    let text = inspect(&program, "mail").0;
    add_missing(&mut connection, &text).await;
    let program = Program::migrated(&settings("BROKEN"));
    let text = program.succeed(&["doctor"]);
    assert!(!text.contains("CHECK") && !text.contains("no label names"), "{text}");
    assert!(!text.contains("warning  outbox"), "what is lasting is no warning: {text}");
    assert!(
        text.contains("does without what its table has no place for: attempts are not logged one by one"),
        "{text}"
    );
    assert!(text.contains("has no column for errors"), "{text}");
}
