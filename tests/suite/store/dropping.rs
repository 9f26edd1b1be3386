//! Callers that go away: a dropped future neither breaks a connection nor leaves half a transition behind.

use outboxd::outcome::Change;

use super::*;

const CALLS: usize = 400;

/// One call of a kind chosen by its number.
async fn call(store: Arc<dyn Store>, number: usize, lease: Lease) {
    match number % 8 {
        0 => drop(store.enqueue(&[NewEvent::new("a", "1"), NewEvent::new("b", "2")]).await),
        1 => drop(store.claim(&one_lane("b", 3)).await),
        2 => drop(store.survey(None, 10).await),
        3 => drop(store.settle(&[settlement(lease, Change::Complete)]).await),
        4 => drop(store.dead_letters(&outboxd::store::DeadLetterQuery::default()).await),
        5 => drop(store.ready().await),
        6 => {
            let keyed = NewEvent { idempotency_key: Some(format!("k{number}")), ..NewEvent::new("a", "1") };
            drop(store.enqueue(&[keyed]).await);
        }
        _ => drop(store.purge(LEASE, LEASE, 10).await),
    }
}

store_test!(hundreds_of_dropped_calls_leave_nothing_broken, |store, sql| {
    let lease = claimed(&store, "c").await.lease;
    let mut tasks = Vec::new();
    for number in 0..CALLS {
        let task = tokio::spawn(call(Arc::clone(&store), number, lease.clone()));
        for _ in 0..fastrand::usize(0..6) {
            tokio::task::yield_now().await;
        }
        if number % 5 == 0 {
            tokio::time::sleep(Duration::from_micros(fastrand::u64(0..800))).await;
        }
        task.abort();
        tasks.push(task);
    }
    for task in tasks {
        let _ = task.await;
    }
    // Whatever was cut off still ends on its own; a call that comes after it on the last connection waits for it.
    for number in 0..16 {
        call(Arc::clone(&store), number, lease.clone()).await;
    }
    store.ready().await.unwrap();
    let id = enqueue(&store, "after").await;
    let claimed = store.claim_by_id(&id.into(), LEASE).await.unwrap().unwrap();
    assert!(settle(&store, claimed.lease, Change::Complete).await);
    assert_eq!(sql.count("SELECT count(*) FROM {events} WHERE {event_type} = 'after'").await, 1);
    let whole = sql.count("SELECT count(*) FROM {events} WHERE {event_type} = 'b'").await;
    let all = sql.count("SELECT count(*) FROM {events} WHERE {event_type} = 'a' AND {idempotency_key} IS NULL").await;
    assert_eq!(whole, all, "a batch is written whole or not at all");
    for _ in 0..200 {
        if sql.idle_in_transaction().await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a session is idle in transaction");
});

store_test!(a_dropped_enqueue_still_happens, |store, sql| {
    let events = [NewEvent::new("a", "1")];
    let mut call = Box::pin(store.enqueue(&events));
    let begun = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_pending())).await;
    assert!(begun);
    drop(call);
    for _ in 0..500 {
        if sql.count("SELECT count(*) FROM {events}").await == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the call was interrupted");
});
