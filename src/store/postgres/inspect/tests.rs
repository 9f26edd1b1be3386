//! Guesses on plain facts.

use serde_json::json;

use super::columns::Role;
use super::facts::{Column, Facts, Index, Kind, Sampled};
use super::plan::Judge;
use super::proposal::{self, Proposal};
use super::statements::Purpose;
use crate::event::Status;

const INSTANT: Kind = Kind::Instant { zoned: true };

fn column(name: &str, kind: Kind) -> Column {
    Column { name: name.to_owned(), type_name: "text".to_owned(), kind, nullable: true, default: None }
}

fn table(columns: Vec<Column>) -> Facts {
    Facts { schema: "public".to_owned(), table: "JobQueue".to_owned(), columns, ..Facts::default() }
}

fn propose(facts: &Facts, sample: &[Sampled]) -> Proposal {
    Proposal::new(facts, proposal::columns(facts), sample)
}

fn sampled(label: &str, [rows, locked, processed, failed]: [i64; 4]) -> Sampled {
    Sampled { label: label.to_owned(), rows, locked, processed, failed }
}

fn label(proposal: &Proposal, status: Status) -> Option<&str> {
    proposal.labels.get(&status).map(|found| found.value.as_str())
}

/// An index as the server describes it.
fn index(name: &str, keys: &[&str], predicate: Option<&str>) -> Index {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    let predicate = predicate.map(str::to_owned);
    Index {
        name: name.to_owned(),
        unique: false,
        primary: false,
        valid: true,
        method: "btree".to_owned(),
        keys,
        predicate,
    }
}

fn plain_table() -> Facts {
    table(vec![
        column("id", Kind::Text),
        column("kind", Kind::Text),
        column("payload", Kind::Json),
        column("status", Kind::Enum(vec!["NEW".into(), "RUNNING".into(), "DONE".into(), "DEAD".into()])),
        column("tries", Kind::Integer),
        column("runAt", INSTANT),
        column("claimedAt", INSTANT),
        column("createdAt", INSTANT),
    ])
}

#[test]
fn columns_are_found_in_either_way_of_writing_and_none_plays_two_parts() {
    let facts = table(vec![
        column("EVENT_ID", Kind::Uuid),
        column("topic", Kind::Text),
        column("Data", Kind::Bytes),
        column("STATE", Kind::Integer),
        column("retryCount", Kind::Integer),
        column("next_attempt_at", INSTANT),
        column("pickedAt", INSTANT),
        column("OccurredAt", INSTANT),
        column("sentAt", INSTANT),
        column("error_message", Kind::Text),
        column("max_retries", Kind::Integer),
        column("aggregateId", Kind::Text),
        column("metadata", Kind::Json),
        column("claim_no", Kind::Integer),
    ]);
    let found = proposal::columns(&facts);
    let names: Vec<&str> = Role::ALL.iter().map(|role| found[role].value.as_str()).collect();
    let expected: Vec<&str> = facts.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_name_with_the_wrong_type_is_passed_over() {
    let facts = table(vec![column("status", INSTANT), column("order_status", Kind::Text), column("id", Kind::Json)]);
    let proposal = propose(&facts, &[]);
    assert_eq!(proposal.column(Role::Status), Some("order_status"));
    assert!(proposal.columns[&Role::Status].remark.is_some());
    assert_eq!(proposal.column(Role::Id), None);
    assert!(proposal.missing().contains(&"id") && proposal.missing().contains(&"pending"));
}

#[test]
fn a_primary_key_is_the_id_whatever_its_name() {
    let mut facts = table(vec![column("id", Kind::Text), column("jobNo", Kind::Integer)]);
    facts.indexes = vec![Index { primary: true, ..index("key", &["\"jobNo\""], None) }];
    assert_eq!(propose(&facts, &[]).column(Role::Id), Some("jobNo"));
}

#[test]
fn several_columns_that_fit_are_named() {
    let facts = table(vec![column("kind", Kind::Text), column("topic", Kind::Text)]);
    let found = &proposal::columns(&facts)[&Role::EventType];
    assert_eq!((found.value.as_str(), found.remark.as_deref()), ("kind", Some("guessed; it could also be topic")));
}

#[test]
fn a_table_without_types_gets_a_fixed_one() {
    let proposal = propose(&table(vec![column("id", Kind::Uuid)]), &[]);
    assert_eq!(proposal.fixed_type.as_deref(), Some("job_queue"));
    assert_eq!(propose(&plain_table(), &[]).fixed_type, None);
}

#[test]
fn labels_are_found_in_an_enum_and_what_is_left_is_noted() {
    let labels = ["Queued", "IN_PROGRESS", "success", "Failed", "Dead", "canceled"].map(str::to_owned).to_vec();
    let proposal = propose(&table(vec![column("status", Kind::Enum(labels))]), &[]);
    let found: Vec<&str> = Status::ALL.iter().filter_map(|status| label(&proposal, *status)).collect();
    assert_eq!(found, ["Queued", "IN_PROGRESS", "success", "Dead", "canceled"]);
    assert!(proposal.notes.iter().any(|note| note.contains("(Failed)")), "{:?}", proposal.notes);
}

#[test]
fn labels_are_found_in_a_check() {
    let mut facts = table(vec![column("state", Kind::Text)]);
    facts.checks = vec![
        "CHECK ((state = ANY (ARRAY['new'::text, 'sending'::text, 'sent'::text, 'it''s dead'::text])))".to_owned(),
        "CHECK ((other = 'failed'::text))".to_owned(),
    ];
    let proposal = propose(&facts, &[]);
    assert_eq!(label(&proposal, Status::Completed), Some("sent"));
    assert_eq!(label(&proposal, Status::DeadLetter), Some("it's dead"), "the only one that is left");
}

#[test]
fn no_word_is_invented_where_a_check_lists_the_valid_ones_or_a_label_is_left() {
    let check = |labels: &[&str]| {
        let labels: Vec<String> = labels.iter().map(|label| format!("('{label}'::character varying)::text")).collect();
        format!("CHECK (((state)::text = ANY (ARRAY[{}])))", labels.join(", "))
    };
    let mut facts = table(vec![column("state", Kind::Text)]);
    facts.checks = vec![check(&["NEW", "SENDING", "SENT", "BROKEN"])];
    assert_eq!(label(&propose(&facts, &[sampled("BROKEN", [3, 0, 3, 1])]), Status::DeadLetter), Some("BROKEN"));
    facts.checks = vec![check(&["NEW", "SENDING", "SENT", "BROKEN", "DRAFT"])];
    let proposal = propose(&facts, &[]);
    assert_eq!(label(&proposal, Status::DeadLetter), None);
    assert!(proposal.missing().contains(&"dead_letter") && proposal.invented().is_empty());
    facts.checks.clear();
    let rows = ["NEW", "SENDING", "SENT", "BROKEN"].map(|label| sampled(label, [3, 1, 1, 1]));
    assert_eq!(label(&propose(&facts, &rows), Status::DeadLetter), Some("BROKEN"));
    assert_eq!(propose(&facts, &rows[..3]).invented(), ["dead_letter"]);
}

#[test]
fn numbers_are_told_apart_by_what_their_rows_look_like() {
    let facts = table(vec![Column { default: Some("7".to_owned()), ..column("status", Kind::Integer) }]);
    let sample = [
        sampled("3", [90, 0, 90, 4]),
        sampled("7", [9, 0, 0, 1]),
        sampled("1", [2, 2, 0, 0]),
        sampled("5", [3, 0, 0, 3]),
    ];
    let proposal = propose(&facts, &sample);
    let found: Vec<&str> = Status::ALL.iter().filter_map(|status| label(&proposal, *status)).collect();
    assert_eq!(found, ["7", "1", "3", "5"]);
    assert!(proposal.labels.values().all(|found| found.remark.is_some()));
}

#[test]
fn labels_of_free_text_that_no_row_shows_are_marked() {
    let facts = table(vec![Column { default: Some("'NEW'::text".to_owned()), ..column("status", Kind::Text) }]);
    let proposal = propose(&facts, &[]);
    assert_eq!(
        (label(&proposal, Status::Pending), label(&proposal, Status::DeadLetter)),
        (Some("NEW"), Some("DEAD_LETTER"))
    );
    assert!(proposal.labels[&Status::DeadLetter].remark.as_deref().is_some_and(|remark| remark.starts_with('?')));
}

#[test]
fn what_is_said_of_a_plan_is_what_it_reads() {
    let scan = |index: &str, condition: &str, filter: &str| {
        json!({"Node Type": "Index Scan", "Relation Name": "JobQueue", "Index Name": index,
               "Index Cond": condition, "Filter": filter})
    };
    let mut facts = plain_table();
    facts.indexes = vec![
        index("right", &["kind", "\"runAt\"", "id"], Some("(status = 'NEW'::\"Status\")")),
        index("by_status", &["status", "\"runAt\""], None),
        index("by_kind", &["kind", "\"createdAt\""], None),
    ];
    let proposal = propose(&facts, &[]);
    let judge = Judge { facts: &facts, proposal: &proposal, lock_outlives_claims: false };
    let judged =
        |plan: &serde_json::Value| judge.verdict(Purpose::Claim, &json!({"Node Type": "Limit", "Plans": [plan]}));

    let right = judged(&scan("right", "((kind = lane.event_type) AND (\"runAt\" <= now()))", ""));
    assert!(right.bounded && right.words.contains("right"), "{right:?}");

    let whole = json!({"Node Type": "Seq Scan", "Relation Name": "JobQueue"});
    let sorted = json!({"Node Type": "Sort", "Plans": [scan("by_status", "(status = 'NEW'::\"Status\")", "")]});
    let by_status = "((status = 'NEW'::\"Status\") AND (\"runAt\" <= now()))";
    for (plan, words) in [
        (whole, "the whole table"),
        (scan("by_status", "", "(kind = 'a')"), "the whole table, by the index by_status"),
        (scan("by_status", by_status, "(kind = lane.event_type)"), "other types"),
        (scan("by_kind", "(kind = lane.event_type)", "(status = 'NEW'::\"Status\")"), "finished events too"),
        (scan("right", "(kind = lane.event_type)", "(\"runAt\" <= now())"), "wait for the future"),
        (sorted, "sorts all"),
    ] {
        let verdict = judged(&plan);
        assert!(!verdict.bounded && verdict.words.contains(words), "{words}: {verdict:?}");
    }
}

#[test]
fn an_index_is_recognised_by_its_keys_and_its_condition() {
    let right = Some("(status = 'NEW'::\"Status\")");
    for (keys, predicate, leads) in [
        (&["kind", "\"runAt\"", "id"][..], right, true),
        (&["status", "kind", "\"runAt\""], None, true),
        (&["kind", "\"runAt\""], None, false),
        (&["kind", "\"runAt\""], Some("(status = 'DONE'::\"Status\")"), false),
        (&["kind", "\"runAt\""], Some("((status = 'NEW'::\"Status\") AND (tries > 3))"), false),
        (&["\"runAt\"", "kind"], right, false),
        (&["kind"], right, false),
    ] {
        let facts = Facts { indexes: vec![index("i", keys, predicate)], ..plain_table() };
        let proposal = propose(&facts, &[]);
        let judge = Judge { facts: &facts, proposal: &proposal, lock_outlives_claims: false };
        assert_eq!(judge.leading_index(Purpose::Claim).is_some(), leads, "{keys:?} {predicate:?}");
    }
}
