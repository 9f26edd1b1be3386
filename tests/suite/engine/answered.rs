//! An answer to an enqueue is a promise: the event is there, whatever becomes of the service a moment later.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::service::Service;
use super::*;
use crate::support::program::http_if_answered;

const CALLERS: usize = 12;

/// Enqueues events until the service is gone; returns the ids of those that were answered.
fn enqueue_until_gone(address: SocketAddr, answered: &AtomicUsize) -> Vec<Uuid> {
    let mut ids = Vec::new();
    while let Some((status, text)) = http_if_answered(address, "POST", "/v1/events", r#"{"type":"a","payload":1}"#) {
        assert_eq!(status, 201, "{text}");
        // What is cut off in the middle is no answer.
        let Some((_, body)) = text.split_once("\r\n\r\n") else { break };
        let Ok(body) = serde_json::from_str::<serde_json::Value>(body) else { break };
        ids.push(body["id"].as_str().unwrap().parse().unwrap());
        answered.fetch_add(1, Ordering::Relaxed);
    }
    ids
}

engine_test!(an_event_that_was_answered_survives_the_death_of_the_service, |world| {
    let receiver = Receiver::start().await;
    let service = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    let answered = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (address, answered) = (service.address, Arc::clone(&answered));
            tokio::task::spawn_blocking(move || enqueue_until_gone(address, &answered))
        })
        .collect();
    while answered.load(Ordering::Relaxed) < 200 {
        tokio::task::yield_now().await;
    }
    tokio::task::spawn_blocking(move || service.running.kill()).await.unwrap();
    let mut ids = Vec::new();
    for caller in callers {
        ids.extend(caller.await.unwrap());
    }
    assert!(ids.len() >= 200);
    for id in &ids {
        assert!(world.store.event(&(*id).into(), false).await.unwrap().is_some(), "{id} was answered and is gone");
    }
});
