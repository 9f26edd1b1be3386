//! The time of one claim through the store, from the scan positions that an instance would have.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outboxd::lease::ClaimedEvent;
use outboxd::outcome::{Change, Settlement};
use outboxd::store::{Claim, LaneClaim, Position, Store, StoreOptions, connect};

use crate::database::{Outbox, State};

/// Events of one claim, of as many lanes if there are so many.
const EVENTS: usize = 10;

/// One outbox under measurement.
pub struct ClaimSide {
    store: Arc<dyn Store>,
    lanes: Vec<LaneClaim>,
    took: Vec<Duration>,
}

impl ClaimSide {
    /// Puts in what these claims will take, and looks where each lane begins.
    pub async fn begin(outbox: &Outbox, claims: usize, types: u64) -> Self {
        // As many in each lane, so that no claim comes to a lane for the last time in vain.
        let events = (claims * EVENTS) as u64;
        outbox.insert_as(events.next_multiple_of(types), types, State::Pending).await;
        let store = connect(&StoreOptions::new(&outbox.url)).await.expect("the database opens");
        let fronts = store.survey(None, 10_000).await.expect("a survey");
        let lane = |front: outboxd::store::LaneFront| LaneClaim {
            event_type: front.event_type,
            limit: 1,
            from: front.claimable,
            lease: Duration::from_secs(60),
        };
        let lanes = fronts.into_iter().map(lane).collect();
        Self { store, lanes, took: Vec::new() }
    }

    /// Times one claim, and settles what it brought.
    pub async fn claim(&mut self) {
        let each = EVENTS.min(self.lanes.len());
        for lane in &mut self.lanes[..each] {
            lane.limit = u32::try_from(EVENTS / each).expect("at most ten");
        }
        let claim = Claim { lanes: self.lanes[..each].to_vec(), subject: None };
        let began = Instant::now();
        let events = self.store.claim(&claim).await.expect("a claim");
        self.took.push(began.elapsed());
        assert!(!events.is_empty(), "the claim finds what was put there");
        for lane in &mut self.lanes[..each] {
            lane.from = end_of(&events, &lane.event_type).max(lane.from.take());
        }
        self.lanes.rotate_left(each);
        let settlements: Vec<Settlement> = events
            .iter()
            .map(|event| Settlement { lease: event.lease.clone(), change: Change::Complete, attempt: None })
            .collect();
        self.store.settle(&settlements).await.expect("a settlement");
    }

    /// The median time of a claim.
    pub async fn finish(mut self) -> Duration {
        self.store.close().await;
        self.took.sort_unstable();
        self.took[self.took.len() / 2]
    }
}

fn end_of(events: &[ClaimedEvent], event_type: &str) -> Option<Position> {
    let of_lane = events.iter().filter(|event| event.event_type == event_type);
    of_lane.map(|event| Position { available_at: event.available_at, id: event.lease.event_id.clone() }).max()
}
