//! What is particular to adopted tables: ids of every type, filters, tables that are altered while they are served.

use std::collections::BTreeSet;
use std::sync::Arc;

use outboxd::event::{EventId, Status};
use outboxd::store::description::{Columns, Description, Labels, TableName};
use outboxd::store::{RequeueChange, Store, StoreError, Transition, connect_adopted};

use super::{LEASE, one_lane, somebody};
use crate::support::database::TestDb;

fn description(filter: Option<&str>) -> Description {
    let own = |name: &str| name.to_owned();
    Description {
        name: own("jobs"),
        table: TableName::parse("jobs").unwrap(),
        columns: Columns {
            id: own("id"),
            event_type: Some(own("kind")),
            payload: own("payload"),
            status: own("status"),
            attempts: own("attempts"),
            available_at: own("due"),
            locked_at: own("locked"),
            created_at: own("created"),
            processed_at: None,
            last_error: Some(own("error")),
            max_attempts: None,
            subject: None,
            headers: None,
            claim_no: None,
        },
        labels: Labels {
            pending: own("new"),
            processing: own("busy"),
            completed: own("done"),
            dead_letter: own("dead"),
            skipped: Some(own("off")),
        },
        fixed_type: None,
        order_by: None,
        max_attempts: 3,
        time_zone: own("UTC"),
        instants: None,
        lease: LEASE,
        processed_at_on: BTreeSet::new(),
        filter: filter.map(own),
    }
}

async fn jobs(id: &str, filter: Option<&str>) -> (TestDb, Arc<dyn Store>) {
    let sql = TestDb::empty_postgres().await;
    let home = sql.migrated().await;
    sql.sql(&format!(
        "CREATE TABLE jobs (id {id} PRIMARY KEY, kind text NOT NULL DEFAULT 'a', payload json NOT NULL DEFAULT '1',
             status text NOT NULL DEFAULT 'new', attempts integer NOT NULL DEFAULT 0,
             due timestamptz(0) NOT NULL DEFAULT now(), locked timestamptz(0), created timestamptz NOT NULL DEFAULT now(),
             error varchar(20), tenant integer NOT NULL DEFAULT 7)"
    ))
    .await;
    let store = connect_adopted(&sql.options, description(filter), home).await.unwrap();
    (sql, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_the_column_cannot_hold_is_nobodys() {
    for (of_type, there, not_there) in [
        ("smallint", "7", vec!["07", "+7", "7.0", "32768", "-32769", "99999999999999999999", "x"]),
        ("integer", "2147483647", vec!["2147483648", "9223372036854775807"]),
        ("bigint", "9223372036854775807", vec!["9223372036854775808"]),
        ("varchar(5)", "abcde", vec!["abcdef", "abcde ", "ABCDE"]),
        ("char(5)", "abc", vec!["abcdef", "abcd"]),
        ("uuid", "0198c0de-0000-7000-8000-000000000001", vec!["0198c0de-0000-7000-8000-000000000002", "7"]),
    ] {
        let (sql, store) = jobs(of_type, None).await;
        sql.sql(&format!("INSERT INTO jobs (id) VALUES ('{there}')")).await;
        for text in not_there {
            let id = EventId::from_text(text);
            assert_eq!(store.event(&id, true).await.unwrap(), None, "{of_type}: {text}");
            assert!(store.claim_by_id(&id, LEASE).await.unwrap().is_none(), "{of_type}: {text}");
            assert_eq!(store.cancel(&id, "x", &somebody()).await.unwrap(), Transition::Absent, "{of_type}: {text}");
        }
        let id = EventId::from_text(there);
        let claimed = store.claim_by_id(&id, LEASE).await.unwrap().unwrap();
        assert_eq!(claimed.lease.event_id, id, "{of_type}");
        let settled = store.settle(&[super::settlement(claimed.lease.clone(), super::bury())]).await.unwrap();
        assert_eq!(settled, [claimed.lease], "{of_type}");
        assert_eq!(store.event(&id, false).await.unwrap().unwrap().status, Status::DeadLetter, "{of_type}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_filter_leaves_out_is_not_of_this_outbox() {
    let (sql, store) = jobs("integer", Some("tenant = 7")).await;
    sql.sql("INSERT INTO jobs (id, tenant, status) VALUES (1, 7, 'new'), (2, 8, 'new'), (3, 8, 'dead')").await;
    let [two, three] = ["2", "3"].map(EventId::from_text);
    assert_eq!(store.event(&two, true).await.unwrap(), None);
    assert!(store.claim_by_id(&two, LEASE).await.unwrap().is_none());
    assert_eq!(store.cancel(&two, "x", &somebody()).await.unwrap(), Transition::Absent);
    assert_eq!(store.requeue(&three, &RequeueChange::default(), &somebody()).await.unwrap(), Transition::Absent);
    assert_eq!(store.discard(&three, "x", &somebody()).await.unwrap(), Transition::Absent);
    assert_eq!(store.claim(&one_lane("a", 10)).await.unwrap().len(), 1);
    assert_eq!(sql.count("SELECT count(*) FROM jobs WHERE tenant = 8 AND status IN ('new', 'dead')").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_altered_while_it_is_served_is_read_again() {
    let (sql, store) = jobs("integer", None).await;
    sql.sql("INSERT INTO jobs (id) VALUES (1), (2), (3)").await;
    assert_eq!(store.claim(&one_lane("a", 1)).await.unwrap().len(), 1);

    sql.sql("ALTER TABLE jobs RENAME COLUMN error TO why").await;
    let error = store.claim_by_id(&EventId::from_text("2"), LEASE).await;
    assert!(error.is_ok(), "this statement does not need the column: {error:?}");
    let error = store.event(&EventId::from_text("2"), false).await.unwrap_err();
    let StoreError::SchemaBroken { reason } = &error else { panic!("{error:?}") };
    assert!(reason.contains("last_error") && reason.contains("jobs"), "{reason}");

    sql.sql("ALTER TABLE jobs RENAME COLUMN why TO error; ALTER TABLE jobs ALTER COLUMN status TYPE varchar(9)").await;
    assert_eq!(store.event(&EventId::from_text("2"), false).await.unwrap().unwrap().status, Status::Processing);
    sql.sql("ALTER TABLE jobs RENAME TO gone").await;
    let error = store.survey(None, 10).await.unwrap_err();
    assert!(matches!(&error, StoreError::SchemaBroken { reason } if reason.contains("does not exist")), "{error:?}");
    sql.sql("ALTER TABLE gone RENAME TO jobs").await;
    assert_eq!(store.claim(&one_lane("a", 10)).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_whole_seconds_is_never_the_one_before() {
    let (sql, store) = jobs("integer", None).await;
    sql.sql("INSERT INTO jobs (id) VALUES (1)").await;
    let id = EventId::from_text("1");
    let first = store.claim_by_id(&id, LEASE).await.unwrap().unwrap().lease;
    let given_back = super::settlement(first.clone(), outboxd::outcome::Change::Release);
    assert_eq!(store.settle(&[given_back]).await.unwrap(), std::slice::from_ref(&first));
    assert!(store.claim_by_id(&id, LEASE).await.unwrap().is_none(), "within the same second");
    let second = loop {
        if let Some(claimed) = store.claim_by_id(&id, LEASE).await.unwrap() {
            break claimed.lease;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert!(second.claim_no >= first.claim_no + 2_000_000, "{first:?} {second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_the_column_would_cut_is_refused() {
    let (sql, store) = jobs("integer", None).await;
    sql.sql("ALTER TABLE jobs ALTER COLUMN status TYPE varchar(3)").await;
    let error = store.survey(None, 10).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::SchemaBroken { reason } if reason.contains("busy") && reason.contains("3 characters")),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_tables_own_rules_do_not_let_go_holds_nobody_up() {
    let (sql, store) = jobs("integer", None).await;
    sql.sql("ALTER TABLE jobs ADD CONSTRAINT never_dead CHECK (status <> 'dead')").await;
    sql.sql(
        "INSERT INTO jobs (id, status, attempts, locked) VALUES
         (1, 'busy', 2, now() - interval '1 hour'), (2, 'busy', 0, now() - interval '1 hour')",
    )
    .await;
    let lanes = [outboxd::store::ReapLane { event_type: "a".to_owned(), after: None }];
    // The server tells of a refusal a moment before it lets the rows go, which others pass over until then.
    let reaped = loop {
        let page = store.reap(&lanes, 100).await.unwrap();
        if !page.reaped.is_empty() {
            break page.reaped;
        }
    };
    assert_eq!(reaped.iter().map(|reaped| reaped.event_id.to_string()).collect::<Vec<_>>(), ["2"]);
    let error = loop {
        if let Err(error) = store.reap_by_id(&EventId::from_text("1")).await {
            break error;
        }
    };
    assert!(error.to_string().contains("never_dead"), "{error}");
    assert_eq!(store.claim(&one_lane("a", 10)).await.unwrap().len(), 1, "its neighbour goes on");
}
