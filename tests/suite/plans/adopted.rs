//! An adopted table without any index but its key: `inspect` says so and names those that are missing, and with them
//! every hot statement is as bounded at a million rows as on our own table.

use std::collections::BTreeSet;
use std::sync::Arc;

use outboxd::event::Status;
use outboxd::store::description::{Columns, Description, Labels, TableName};
use outboxd::store::postgres::adopted::AdoptedStore;
use outboxd::store::postgres::inspect::inspect;
use outboxd::store::{self, StoreOptions};

use super::explain::Session;
use super::{BATCH, Call, IN_FRONT, assert_bounded, types};
use crate::support::postgres::fresh_database;

const TABLE: &str = "
CREATE TABLE outbox_event (
    id text PRIMARY KEY, event_type text NOT NULL, payload json NOT NULL, status text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0, max_attempts integer NOT NULL DEFAULT 10, available_at timestamp NOT NULL,
    locked_at timestamp, created_at timestamp NOT NULL, processed_at timestamp, last_error text)
WITH (autovacuum_enabled = false);
ANALYZE outbox_event;";

/// 500,000 completed, 400,000 due in four lanes, 100,000 of the future.
const FILL: &str = "
INSERT INTO outbox_event (id, event_type, payload, status, available_at, created_at, processed_at)
SELECT 'h' || n, 'history', '{\"n\":1}', 'completed', at, at, at
FROM (SELECT n, (now() AT TIME ZONE 'UTC') - interval '60 days' + n * interval '1 second' AS at
      FROM generate_series(1, 500000) AS n) AS old;
INSERT INTO outbox_event (id, event_type, payload, available_at, created_at)
SELECT 'b' || n, (ARRAY['backlog.bulk', 'backlog.one', 'backlog.two', 'backlog.three'])[1 + n % 4], '{\"n\":1}', at, at
FROM (SELECT n, (now() AT TIME ZONE 'UTC') - interval '2 hours'
                    + CASE WHEN n % 4 = 0 THEN 0 ELSE n END * interval '10 ms' AS at
      FROM generate_series(1, 400000) AS n) AS due;
INSERT INTO outbox_event (id, event_type, payload, available_at, created_at)
SELECT 'f' || n, 'future', '{\"n\":1}', (now() AT TIME ZONE 'UTC') + interval '1 day' + n * interval '1 second',
       (now() AT TIME ZONE 'UTC')
FROM generate_series(1, 100000) AS n;";

const LANES: [&str; 4] = ["backlog.bulk", "backlog.one", "backlog.two", "backlog.three"];

fn description() -> Description {
    let own = |name: &str| name.to_owned();
    Description {
        name: own("app"),
        table: TableName::parse("outbox_event").unwrap(),
        columns: Columns {
            id: own("id"),
            event_type: Some(own("event_type")),
            payload: own("payload"),
            status: own("status"),
            attempts: own("attempts"),
            available_at: own("available_at"),
            locked_at: own("locked_at"),
            created_at: own("created_at"),
            processed_at: Some(own("processed_at")),
            last_error: Some(own("last_error")),
            max_attempts: Some(own("max_attempts")),
            subject: None,
            headers: None,
            claim_no: None,
        },
        labels: Labels {
            pending: own("pending"),
            processing: own("processing"),
            completed: own("completed"),
            dead_letter: own("dead_letter"),
            skipped: None,
        },
        fixed_type: None,
        order_by: None,
        max_attempts: 10,
        time_zone: own("UTC"),
        instants: None,
        lease: std::time::Duration::from_mins(2),
        processed_at_on: BTreeSet::from([Status::Completed]),
        filter: None,
    }
}

async fn session(url: &str) -> Session {
    let options = StoreOptions::new(url);
    let home = store::connect(&options).await.unwrap();
    home.migrate().await.unwrap();
    let adopted = AdoptedStore::connect(&options, description(), Arc::clone(&home)).unwrap();
    let texts = adopted.texts().await.unwrap();
    Session::with(url, &AdoptedStore::session_settings(), texts).await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_indexes_that_inspect_names_an_adopted_table_of_a_million_rows_is_bounded() {
    let url = fresh_database().await;
    let mut owner = Session::with(&url, &[], Vec::new()).await;
    owner.run(TABLE).await;
    owner.run(FILL).await;

    let options = StoreOptions::new(&url);
    let name = TableName::parse("outbox_event").unwrap();
    let before = inspect(&options, &name).await.unwrap();
    let needed: Vec<&str> =
        before.indexes.iter().filter(|advice| advice.needed).map(|advice| advice.statement.as_str()).collect();
    assert!(!before.is_sound() && needed.len() >= 2, "claims and old claims: {needed:?}");
    // The judgement below can fail: without the indexes it does.
    let mut slow = session(&url).await;
    let claim = slow.explain("claim_lane('backlog.one', 100)").await;
    assert!(!claim.problems(10 * BATCH + IN_FRONT).is_empty(), "{}", claim.outline());
    slow.run("UPDATE outbox_event SET status = 'pending', locked_at = NULL WHERE status = 'processing'").await;

    for statement in needed {
        owner.run(statement).await;
    }
    let after = inspect(&options, &name).await.unwrap();
    let slow = after.statements.iter().find(|hot| hot.purpose.is_hot() && !hot.verdict.bounded);
    assert!(!after.statements.is_empty() && slow.is_none(), "{slow:?}");
    assert_eq!(after.proposal.invented(), ["processing", "dead_letter"], "no row shows these labels");
    assert!(!after.is_sound());
    assert_all_bounded(&mut session(&url).await, "statistics of the empty table").await;
    owner.run("ANALYZE outbox_event").await;
    assert_all_bounded(&mut session(&url).await, "fresh statistics").await;
}

async fn assert_all_bounded(session: &mut Session, way: &str) {
    let claim_buffers = 20 * BATCH + IN_FRONT;
    let lanes = types(&LANES);
    for call in [
        Call::new("survey".to_owned(), 600 + IN_FRONT),
        Call::new("expired_types".to_owned(), 60),
        Call::new(format!("peek({lanes})"), 60 + IN_FRONT),
        Call::new("peek('{future}')".to_owned(), 40),
        Call::new("claim_lane('backlog.bulk', 100)".to_owned(), claim_buffers),
        Call::new("claim_lane('backlog.one', 100)".to_owned(), claim_buffers),
        Call::new("claim_lane('future', 100)".to_owned(), 40),
        Call::new(format!("claim({lanes}, '{{25,25,25,25}}')"), claim_buffers),
        Call::new("survey".to_owned(), 600 + IN_FRONT),
    ] {
        assert_bounded(session, way, &call).await;
    }
    let held = "SELECT id, (extract(epoch FROM locked_at AT TIME ZONE 'UTC') * 1000000)::bigint AS fence
                FROM outbox_event WHERE status = 'processing' ORDER BY id LIMIT 100";
    let ids = session.text(format!("SELECT array_agg(id ORDER BY id)::text FROM ({held}) AS held")).await;
    let fences = session.text(format!("SELECT array_agg(fence ORDER BY id)::text FROM ({held}) AS held")).await;
    let all = |value: &str| format!("'{{{}}}'", vec![value; 100].join(","));
    let settle = format!(
        "settle('{ids}', '{fences}', {}, {}, {}, {}, {})",
        all("completed"),
        all("0"),
        all("NULL"),
        all("false"),
        all("NULL")
    );
    assert_bounded(session, way, &Call::new(settle.clone(), 40 * BATCH)).await;
    assert_bounded(session, way, &Call::new(settle, 8 * BATCH)).await;
    assert_bounded(session, way, &Call::new(format!("payloads('{ids}')"), 8 * BATCH)).await;

    session.run("UPDATE outbox_event SET locked_at = locked_at - interval '1 hour' WHERE status = 'processing'").await;
    assert_bounded(session, way, &Call::new("expired_types".to_owned(), 2_000)).await;
    assert_bounded(session, way, &Call::new(format!("reap({lanes}, 100)"), 40 * BATCH)).await;
    for call in ["claim_by_id('f1')", "is_due('f1')", "event('f1', true)", "extend('f1', 1, 1)", "reap_by_id('f1')"] {
        // A planner that believes nothing is claimed may look through what is: as many as handlers run at once.
        assert_bounded(session, way, &Call::new(call.to_owned(), 4 * BATCH)).await;
    }
    session.run("UPDATE outbox_event SET status = 'pending', locked_at = NULL WHERE status = 'processing'").await;
    // The ids' order is not that of the rows: each may lie on a page of its own.
    for call in ["events", "events_rising"] {
        for filters in ["'{}', '{}'", "'{skipped}', '{no.such.type}'"] {
            for place in ["NULL, NULL", "'2026-01-01', 'b5'"] {
                let call = format!("{call}({filters}, NULL, NULL, NULL, {place}, 50, 2000)");
                assert_bounded(session, way, &Call::new(call, 4_500)).await;
            }
        }
    }
    assert_bounded(session, way, &Call::new(format!("read_many('{ids}', true)"), 8 * BATCH)).await;
    assert_bounded(session, way, &Call::new(format!("dead_among('{ids}')"), 8 * BATCH)).await;
}
