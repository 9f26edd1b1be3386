//! Runs as they are kept: one row each, idle ones thinned, the dead ones told from the living.

use outboxd::run::{RunReport, RunState, StopReason, Trigger};
use outboxd::store::RunPage;

use super::*;

const BUDGET: Duration = Duration::from_secs(60);

fn finished(run_id: Uuid, claimed: u64) -> RunReport {
    let mut report = RunReport::begun(run_id);
    report.state = RunState::Finished;
    report.stop_reason = Some(StopReason::Drained);
    report.claimed = claimed;
    report.completed = claimed;
    report
}

async fn all(store: &Arc<dyn Store>) -> Vec<Uuid> {
    let page = RunPage { after: None, limit: 100 };
    store.runs(&page).await.unwrap().into_iter().map(|run| run.report.run_id).collect()
}

store_test!(a_run_is_replaced_by_its_later_reports, |store, sql| {
    let id = Uuid::now_v7();
    store.save_run(&RunReport::begun(id), Trigger::Http, BUDGET).await.unwrap();
    let begun = store.run(id).await.unwrap().unwrap();
    assert_eq!((begun.report.state, begun.trigger), (RunState::Running, Trigger::Http));
    let report = finished(id, 3);
    store.save_run(&report, Trigger::Http, BUDGET).await.unwrap();
    let ended = store.run(id).await.unwrap().unwrap();
    assert_eq!((ended.report, ended.started_at), (report, begun.started_at));
    assert_eq!(all(&store).await, [id]);
    assert_eq!(store.run(Uuid::now_v7()).await.unwrap(), None);
});

store_test!(a_report_that_comes_late_does_not_undo_the_final_one, |store, sql| {
    let report = finished(Uuid::now_v7(), 3);
    store.save_run(&report, Trigger::Http, BUDGET).await.unwrap();
    store.save_run(&RunReport::begun(report.run_id), Trigger::Http, BUDGET).await.unwrap();
    assert_eq!(store.run(report.run_id).await.unwrap().unwrap().report, report);
});

store_test!(idle_runs_are_thinned_to_one_a_minute, |store, sql| {
    let (first, second, third) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    store.save_run(&finished(first, 0), Trigger::Poller, BUDGET).await.unwrap();
    store.save_run(&finished(second, 0), Trigger::Poller, BUDGET).await.unwrap();
    assert_eq!(all(&store).await, [first]);
    store.save_run(&finished(second, 1), Trigger::Poller, BUDGET).await.unwrap();
    assert_eq!(all(&store).await.len(), 2, "a run that did something is kept");
    let ago = sql.ago(Duration::from_secs(61));
    let finished_at = format!("UPDATE {{runs}} SET started_at = {ago}, finished_at = {ago}");
    sql.sql(&finished_at).await;
    store.save_run(&finished(third, 0), Trigger::Poller, BUDGET).await.unwrap();
    assert_eq!(all(&store).await.len(), 3);
});

store_test!(a_run_that_failed_is_kept_and_thins_no_other, |store, sql| {
    let failed = || RunReport { stop_reason: Some(StopReason::Error), ..finished(Uuid::now_v7(), 0) };
    let (one, two, good) = (failed(), failed(), finished(Uuid::now_v7(), 0));
    for report in [&one, &good, &two] {
        store.save_run(report, Trigger::Poller, BUDGET).await.unwrap();
    }
    assert_eq!(all(&store).await.len(), 3);
});

store_test!(an_idle_run_that_was_begun_is_kept, |store, sql| {
    store.save_run(&finished(Uuid::now_v7(), 0), Trigger::Cli, BUDGET).await.unwrap();
    let begun = Uuid::now_v7();
    store.save_run(&RunReport::begun(begun), Trigger::Http, BUDGET).await.unwrap();
    store.save_run(&finished(begun, 0), Trigger::Http, BUDGET).await.unwrap();
    assert_eq!(store.run(begun).await.unwrap().unwrap().report.state, RunState::Finished);
});

store_test!(a_run_that_never_reports_is_lost, |store, sql| {
    let (lost, done) = (Uuid::now_v7(), Uuid::now_v7());
    store.save_run(&RunReport::begun(lost), Trigger::Http, Duration::ZERO).await.unwrap();
    store.save_run(&RunReport::begun(done), Trigger::Http, Duration::ZERO).await.unwrap();
    store.save_run(&finished(done, 1), Trigger::Http, Duration::ZERO).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(store.run(lost).await.unwrap().unwrap().report.state, RunState::Lost);
    assert_eq!(store.run(done).await.unwrap().unwrap().report.state, RunState::Finished);
    let states: Vec<RunState> =
        store.runs(&RunPage { after: None, limit: 9 }).await.unwrap().into_iter().map(|run| run.report.state).collect();
    assert!(states.contains(&RunState::Lost) && states.contains(&RunState::Finished));
});

store_test!(runs_come_newest_first_page_by_page_for_a_week, |store, sql| {
    let mut ids = Vec::new();
    for number in 0..5_u64 {
        let id = Uuid::now_v7();
        store.save_run(&finished(id, 1), Trigger::Cli, BUDGET).await.unwrap();
        let ago = sql.ago(Duration::from_secs(100 - number));
        sql.sql(&format!("UPDATE {{runs}} SET started_at = {ago} WHERE run_id = '{id}'")).await;
        ids.insert(0, id);
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.runs(&RunPage { after, limit: 2 }).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.started_at, last.report.run_id));
        found.extend(page.iter().map(|run| run.report.run_id));
    }
    assert_eq!(found, ids);

    let ago = sql.ago(Duration::from_secs(8 * 24 * 60 * 60));
    sql.sql(&format!("UPDATE {{runs}} SET started_at = {ago} WHERE run_id = '{}'", ids[4])).await;
    let next = Uuid::now_v7();
    store.save_run(&finished(next, 1), Trigger::Cli, BUDGET).await.unwrap();
    let kept = all(&store).await;
    assert!(kept.contains(&next) && !kept.contains(&ids[4]) && kept.len() == 5);
});
