//! Lists and changes of many dead letters look at a bounded number of rows, whatever the filter leaves of them.

use super::explain::Session;
use super::{Call, assert_bounded};

/// Behind every dead letter, and before all of them.
const NEWEST: &str = "'9999-12-31', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '0001-01-01'";

/// Runs each statement once and holds it to its bounds.
pub async fn assert_lists_bounded(session: &mut Session, way: &str) {
    // Each dead letter stands on its own page, and the index on some more.
    for filters in ["NULL, NULL", "'nobody', NULL", "NULL, 'no such error'"] {
        let all = format!("find_dead({filters}, {NEWEST}, 500, 2000)");
        assert_bounded(session, way, &Call::new(all, 2_500)).await;
        let of_types = format!("find_dead_of_types({filters}, {NEWEST}, 500, 1000, '{{history,no.such.type}}')");
        assert_bounded(session, way, &Call::new(of_types, 1_500)).await;
    }
    let events = |statement: &str, filters: &str, looked_at: u64| {
        Call::new(format!("{statement}({filters}, NULL, NULL, NULL, false, 50, {looked_at})"), looked_at * 2 + 100)
    };
    assert_bounded(session, way, &events("find_events", "'{}', '{}', NULL", 51)).await;
    assert_bounded(session, way, &events("find_events_rising", "'{}', '{}', NULL", 51)).await;
    assert_bounded(session, way, &events("find_events", "'{skipped}', '{no.such.type}', 'nobody'", 2_000)).await;
    assert_bounded(session, way, &events("find_events_live", "'{processing}', '{}', NULL", 2_000)).await;
    assert_bounded(session, way, &events("find_events_live_of_types", "'{pending}', '{future}', NULL", 2_000)).await;
    assert_bounded(session, way, &events("find_events_dead", "'{dead_letter}', '{}', NULL", 2_000)).await;
    assert_bounded(session, way, &events("find_events_dead_of_types", "'{dead_letter}', '{history}', NULL", 2_000))
        .await;
    assert_bounded(session, way, &events("find_events_subject", "'{}', '{}', 'thing/7'", 2_000)).await;

    let hundred =
        "SELECT array_agg(id)::text FROM (SELECT id FROM outbox.event WHERE dead_at IS NOT NULL LIMIT 100) AS dead";
    let ids = session.text(hundred).await;
    session.run("BEGIN").await;
    assert_bounded(session, way, &Call::new(format!("dead_among('{ids}')"), 1_000)).await;
    assert_bounded(session, way, &Call::new(format!("read_many('{ids}', true)"), 1_000)).await;
    // Each leaves two indexes of dead letters and enters the live one; its line in the log stands beside the others'.
    let requeue = format!("requeue_many('{ids}', 60000000, 'somebody', NULL)");
    assert_bounded(session, way, &Call::new(requeue, 6_000)).await;
    session.run("ROLLBACK").await;
}
