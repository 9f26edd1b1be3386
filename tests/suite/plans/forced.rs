//! Whatever plan the planner is driven to, a claim takes what it was asked for and no event twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use outboxd::store::{self, Claim, LaneClaim, Store, StoreOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::postgres::fresh_database;

const BACKLOG: usize = 1_000;

/// What may be switched off, one each and in the worst of company.
const SWITCHED_OFF: [&[&str]; 9] = [
    &["enable_nestloop"],
    &["enable_mergejoin"],
    &["enable_hashjoin"],
    &["enable_material"],
    &["enable_sort"],
    &["enable_indexscan", "enable_indexonlyscan"],
    &["enable_nestloop", "enable_hashjoin", "enable_material"],
    &["enable_nestloop", "enable_mergejoin", "enable_sort", "enable_bitmapscan"],
    // What is left is to ask the subquery again for each event of the table.
    &["enable_mergejoin", "enable_hashjoin", "enable_material", "enable_memoize", "enable_hashagg", "enable_sort"],
];

fn lane(event_type: &str, limit: u32) -> LaneClaim {
    LaneClaim { event_type: event_type.to_owned(), limit, from: None, lease: Duration::from_secs(60) }
}

/// Claims five at a time, three of one lane and two of another, until nothing is left.
async fn claim_all(store: Arc<dyn Store>) -> Vec<Uuid> {
    let claim = Claim { lanes: vec![lane("one", 3), lane("two", 2)], subject: None };
    let mut all = Vec::new();
    loop {
        let claimed = store.claim(&claim).await.unwrap();
        for lane in &claim.lanes {
            let count = claimed.iter().filter(|event| event.event_type == lane.event_type).count();
            assert!(count <= lane.limit as usize, "{count} of {} were claimed for {}", lane.event_type, lane.limit);
        }
        if claimed.is_empty() {
            return all;
        }
        all.extend(claimed.into_iter().map(|event| event.lease.event_id.uuid().unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_plan_makes_a_claim_take_more_than_its_allowance_or_an_event_twice() {
    let url = fresh_database().await;
    store::connect(&StoreOptions::new(&url)).await.unwrap().migrate().await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let database: String = sqlx::query_scalar("SELECT current_database()").fetch_one(&mut connection).await.unwrap();
    let mut previous: &[&str] = &[];
    for settings in SWITCHED_OFF {
        for setting in previous {
            let reset = AssertSqlSafe(format!("ALTER DATABASE {database} RESET {setting}"));
            sqlx::raw_sql(reset).execute(&mut connection).await.unwrap();
        }
        for setting in settings {
            let set = AssertSqlSafe(format!("ALTER DATABASE {database} SET {setting} = off"));
            sqlx::raw_sql(set).execute(&mut connection).await.unwrap();
        }
        previous = settings;
        sqlx::raw_sql(
            "DELETE FROM outbox.event;
             INSERT INTO outbox.event (event_type, payload)
             SELECT CASE WHEN n <= 600 THEN 'one' ELSE 'two' END, '{}' FROM generate_series(1, 1000) AS n;",
        )
        .execute(&mut connection)
        .await
        .unwrap();

        let store = store::connect(&StoreOptions::new(&url)).await.unwrap();
        let mut claimers = JoinSet::new();
        for _ in 0..4 {
            claimers.spawn(claim_all(Arc::clone(&store)));
        }
        let claimed: Vec<Uuid> = claimers.join_all().await.into_iter().flatten().collect();
        let distinct: HashSet<&Uuid> = claimed.iter().collect();
        assert_eq!((claimed.len(), distinct.len()), (BACKLOG, BACKLOG), "with {settings:?} off");
        store.close().await;
    }
}
