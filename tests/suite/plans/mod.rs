//! The store's statements cost the same whatever lies in the table, and whatever the statistics say of it.
//!
//! A queue's table is often empty when it is analysed, and a session may keep a plan that it made then. So every hot
//! statement is run on a million events in four ways: with a plan that was made on the empty table, with a plan made now
//! from statistics of the empty table, and with fresh statistics, with and without regard to the arguments.

mod adopted;
mod dead_entries;
mod explain;
mod forced;
mod lists;
mod table;

use self::explain::Session;
use self::lists::assert_lists_bounded;
use self::table::{IDLE_LANE, LANES, LIVE_LANES, empty_outbox, fill};

/// Events in one call of each statement.
const BATCH: u64 = 100;

/// Buffers for what stands in front of a lane: events that earlier calls have claimed, and entries of those that they
/// have settled, for nothing is vacuumed here. A few calls' worth; a backlog's would be a hundred times as many.
const IN_FRONT: u64 = 6 * BATCH;

/// A statement with its arguments, and the buffers that it may touch.
struct Call {
    text: String,
    most_buffers: u64,
}

impl Call {
    fn new(text: String, most_buffers: u64) -> Self {
        Self { text, most_buffers }
    }
}

/// A Postgres array of one value for each of `count` lanes.
fn each(value: &str, count: usize) -> String {
    format!("'{{{}}}'", vec![format!("\"{value}\""); count].join(","))
}

fn types(lanes: &[&str]) -> String {
    format!("'{{{}}}'", lanes.join(","))
}

/// Before everything, as the store gives it for a lane without a scan position.
const FRONT_AT: &str = "0001-01-01 00:00:00+00";
const FRONT_ID: &str = "00000000-0000-0000-0000-000000000000";

fn fronts(count: usize) -> String {
    format!("{}, {}", each(FRONT_AT, count), each(FRONT_ID, count))
}

fn claim(lanes: &[&str], each_lane: u64, lease_micros: i64) -> String {
    let count = lanes.len();
    let (limits, leases) = (each(&each_lane.to_string(), count), each(&lease_micros.to_string(), count));
    format!("claim({}, {limits}, {}, {leases})", types(lanes), fronts(count))
}

/// What an instance does all day, in an order in which each statement finds something to do.
fn claims() -> Vec<Call> {
    // A claim reads the index once a lane, and each event's page twice or thrice: to lock it, to write it.
    let claim_buffers = 10 * BATCH + IN_FRONT;
    vec![
        Call::new("survey('', 1000)".to_owned(), 30 + 12 * LIVE_LANES + IN_FRONT),
        Call::new(claim(&LANES, BATCH / 4, 60_000_000), claim_buffers),
        Call::new(claim(&["backlog.bulk"], BATCH, 60_000_000), claim_buffers),
        Call::new(claim(&[IDLE_LANE], BATCH, 60_000_000), 12),
        Call::new(format!("peek({}, {})", types(&LANES), fronts(LANES.len())), 12 * LANES.len() as u64 + IN_FRONT),
        Call::new(format!("peek({}, {})", types(&[IDLE_LANE]), fronts(1)), 12),
        Call::new("survey('', 1000)".to_owned(), 30 + 12 * LIVE_LANES + IN_FRONT),
    ]
}

/// Ids and claim numbers of a hundred events that are claimed at the moment, as arrays.
async fn held(session: &mut Session) -> (String, String) {
    let held = "SELECT id, claim_no FROM outbox.event
                WHERE processed_at IS NULL AND status = 'processing' AND lease_until > now()
                ORDER BY available_at DESC, id DESC LIMIT 100";
    let ids = session.text(format!("SELECT array_agg(id ORDER BY id)::text FROM ({held}) AS held")).await;
    let claim_nos = session.text(format!("SELECT array_agg(claim_no ORDER BY id)::text FROM ({held}) AS held")).await;
    (ids, claim_nos)
}

/// A settlement of each of these events: every second is retried, the others are buried, all with a line in the log.
fn settle(ids: &str, claim_nos: &str) -> String {
    let count = ids.split(',').count();
    let turns = |even: &str, odd: &str| {
        let values: Vec<&str> = (0..count).map(|index| if index % 2 == 0 { even } else { odd }).collect();
        format!("'{{{}}}'", values.join(","))
    };
    format!(
        "settle('{ids}', '{claim_nos}', {status}, {ones}, {delays}, {no}, {errors}, {clear}, {ones}, {ones}, {outcomes}, \
         {nothing}, {errors}, {nothing})",
        status = turns("pending", "dead_letter"),
        ones = turns("1", "1"),
        delays = turns("2000000", "NULL"),
        no = turns("false", "false"),
        errors = turns("refused", "refused"),
        clear = turns("clear", "clear"),
        outcomes = turns("retry", "dead_letter"),
        nothing = turns("NULL", "NULL"),
    )
}

async fn assert_bounded(session: &mut Session, way: &str, call: &Call) {
    let explained = session.explain(&call.text).await;
    let name = call.text.split('(').next().unwrap();
    println!("{way}: {name} touches {} buffers", explained.buffers());
    let problems = explained.problems(call.most_buffers);
    assert!(problems.is_empty(), "{way}: {name} {}\n{}", problems.join("; "), explained.outline());
}

/// Runs every hot statement once and holds it to its bounds.
async fn assert_all_bounded(session: &mut Session, way: &str) {
    for call in claims() {
        assert_bounded(session, way, &call).await;
    }
    // Settling takes an event out of the live index, so each of its indexes is written.
    let (ids, claim_nos) = held(session).await;
    assert_bounded(session, way, &Call::new(format!("complete('{ids}', '{claim_nos}')"), 20 * BATCH)).await;
    let (ids, claim_nos) = held(session).await;
    assert_bounded(session, way, &Call::new(settle(&ids, &claim_nos), 30 * BATCH)).await;
    assert_bounded(session, way, &Call::new(format!("complete('{ids}', '{claim_nos}')"), 6 * BATCH)).await;

    // Leases that have expired at once, and a page of them to take back.
    let page = 256;
    session.explain(&claim(&["backlog.two"], page, -1)).await;
    let reap = format!("reap({}, {}, {page})", types(&LANES), fronts(LANES.len()));
    assert_bounded(session, way, &Call::new(reap.clone(), 30 * page)).await;
    assert_bounded(session, way, &Call::new(reap, 4 * page)).await;

    let id = session
        .text("SELECT id::text FROM outbox.event WHERE event_type = 'future' AND processed_at IS NULL LIMIT 1")
        .await;
    for call in [
        "claim_by_id('{id}', 1)",
        "is_due('{id}')",
        "extend('{id}', 1, 1)",
        "reap_by_id('{id}')",
        "event('{id}', true)",
    ] {
        assert_bounded(session, way, &Call::new(call.replace("{id}", &id), 12)).await;
    }
    for call in [
        "peek_subject('{backlog.three,future}', 'thing/300003')",
        "claim_subject('{backlog.three,future}', 'thing/300003', 100, '{1,1}')",
        "in_flight_subject('{backlog.three,future}', 'thing/300003')",
        "known('{no,such,key}', '{00000000-0000-0000-0000-000000000000}')",
    ] {
        assert_bounded(session, way, &Call::new(call.to_owned(), 40)).await;
    }
    // Counting looks at as many rows as it is told, and reads no more pages than that is worth.
    let lanes = 30 + 24 * (LIVE_LANES + 2) + IN_FRONT;
    assert_bounded(session, way, &Call::new("stats_lanes('', 200)".to_owned(), lanes)).await;
    for rows in [100, 1_000] {
        let counts = format!("stats_count({}, {rows}, {rows}, {rows})", types(&["backlog.one", IDLE_LANE, "history"]));
        assert_bounded(session, way, &Call::new(counts, 4 * 2 * rows + 200 + IN_FRONT)).await;
    }
    assert_lists_bounded(session, way).await;
    // Forty days are more than the history of the younger half.
    let purge = "purge(3456000000000, 3456000000000, 100)";
    assert_bounded(session, way, &Call::new(purge.to_owned(), 10 * BATCH)).await;

    // The next one shall not find these claims before him.
    session
        .run(
            "UPDATE outbox.event SET status = 'pending', locked_at = NULL, lease_until = NULL
             WHERE processed_at IS NULL AND status = 'processing'",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_statements_touch_few_buffers_at_a_million_events_whatever_the_statistics() {
    let url = empty_outbox().await;
    let mut old = Session::open(&url, "force_generic_plan").await;
    old.plan_all().await;
    let mut filler = Session::open(&url, "auto").await;
    fill(&mut filler).await;

    assert_all_bounded(&mut old, "plans of the empty table").await;
    for plans in ["force_generic_plan", "force_custom_plan"] {
        let mut session = Session::open(&url, plans).await;
        assert_all_bounded(&mut session, &format!("statistics of the empty table, {plans}")).await;
    }

    filler.run("ANALYZE outbox.event").await;
    filler.run("ANALYZE outbox.attempt").await;
    for plans in ["force_generic_plan", "force_custom_plan"] {
        let mut session = Session::open(&url, plans).await;
        assert_all_bounded(&mut session, &format!("fresh statistics, {plans}")).await;
    }

    assert_claims_are_hot(&mut filler).await;
    assert_bad_statements_are_found(&mut filler).await;
}

/// A claim writes no index: every update it makes is a HOT update.
async fn assert_claims_are_hot(session: &mut Session) {
    session.run("BEGIN").await;
    session.explain(&claim(&LANES, BATCH / 4, 60_000_000)).await;
    let counts = "SELECT n_tup_upd || ' updates, ' || n_tup_hot_upd || ' of them HOT'
                  FROM pg_stat_xact_user_tables WHERE relid = 'outbox.event'::regclass";
    assert_eq!(session.text(counts).await, "100 updates, 100 of them HOT");
    session.run("ROLLBACK").await;
}

/// The judgement can fail: what a careless claim would do is seen.
async fn assert_bad_statements_are_found(session: &mut Session) {
    let sorts = "SELECT id FROM outbox.event WHERE processed_at IS NULL AND event_type = 'backlog.one'
                 ORDER BY created_at LIMIT 100";
    let problems = session.explain_sql(sorts).await.problems(1_000);
    assert!(problems.iter().any(|problem| problem.starts_with("Sort over")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.starts_with("touches")), "{problems:?}");
    session.run("SET enable_seqscan = on").await;
    let scans = "SELECT id FROM outbox.event WHERE status = 'processing'";
    let problems = session.explain_sql(scans).await.problems(1_000);
    assert!(problems.iter().any(|problem| problem.starts_with("scans the whole")), "{problems:?}");
}
