//! A sweep: what stands at the front of every lane, and which leases have expired there.
//!
//! It finds what positions hide: events that were committed late with an earlier due time, and new types. It reaps in
//! every lane, whether the lane can run or not.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::Shared;
use crate::event::{EventId, Status};
use crate::store::{LaneFront, ReapLane, StoreError};

/// Lanes in one survey.
const SURVEY_LANES: u32 = 1_000;
/// Surveys in one sweep; the next sweep goes on where it stopped.
const MAX_SURVEYS: usize = 10;
/// Events that a reap looks at in each lane.
const REAP_PAGE: u32 = 256;
/// Pages of one reap; what lies behind waits for its front to move on.
const MAX_REAP_PAGES: usize = 64;
/// How often a lane with claimed events at its front is looked through for expired leases.
pub(super) const REAP_EVERY: Duration = Duration::from_secs(1);

/// The same for a lane whose first due event nobody has claimed. What was claimed by its id may have expired behind it, and
/// in a lane that cannot run now the front never moves on.
const REAP_BEHIND_EVERY: Duration = Duration::from_secs(10);

/// What a sweep found, beside what it noted in the lanes' memory.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// Every type with live events.
    pub(super) types: Vec<String>,
    /// How many expired leases were taken back.
    pub(super) reaped: u64,
    /// Those of their events that became dead letters.
    pub(super) dead: Vec<EventId>,
}

/// The sweep that a run has left behind because it had no use for it any more, and what such sweeps took back.
#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    /// Held by the sweep's task.
    under_way: Weak<()>,
    swept: Swept,
}

impl LeftBehind {
    /// Whether one is still going on.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.strong_count() > 0
    }

    /// What no run has reported yet.
    pub(super) fn take(&mut self) -> Swept {
        mem::take(&mut self.swept)
    }

    fn begin(&mut self) -> Arc<()> {
        let mark = Arc::new(());
        self.under_way = Arc::downgrade(&mark);
        mark
    }

    fn note(&mut self, swept: Swept) {
        self.swept.reaped += swept.reaped;
        self.swept.dead.extend(swept.dead);
    }
}

/// Lets a sweep go on without its run, until it ends or the processor stops. The lanes' memory learns what it sees, and
/// the next run to end reports what it took back.
pub(super) fn leave_behind(shared: Arc<Shared>, sweep: BoxFuture<'static, Result<Swept, StoreError>>) {
    let mark = shared.left_behind().begin();
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        tokio::select! {
            swept = sweep => match swept {
                Ok(swept) => shared.left_behind().note(swept),
                Err(error) => tracing::warn!(%error, "a sweep failed; the next run sweeps again"),
            },
            () = shared.stop.cancelled() => {}
        }
        drop(mark);
    });
}

/// Looks at the front of every lane. `reap_every` says how old an earlier look for expired leases may be.
pub(super) async fn sweep(shared: Arc<Shared>, reap_every: Duration) -> Result<Swept, StoreError> {
    let began = Instant::now();
    // Every run sweeps before it claims, so the key is there when the first delivery starts.
    shared.claim_key().await?;
    let mut swept = Swept::default();
    for _ in 0..MAX_SURVEYS {
        let after = shared.lanes().survey_after.clone();
        let fronts = shared.store.survey(after.as_deref(), SURVEY_LANES).await?;
        let to_the_end = fronts.len() < SURVEY_LANES as usize;
        {
            let mut lanes = shared.lanes();
            lanes.note_survey(after.as_deref(), &fronts, to_the_end);
            lanes.survey_after = fronts.last().filter(|_| !to_the_end).map(|front| front.event_type.clone());
        }
        reap(&shared, &fronts, reap_every, &mut swept).await?;
        swept.types.extend(fronts.into_iter().map(|front| front.event_type));
        if to_the_end {
            break;
        }
    }
    shared.lanes().note_sweep(began.elapsed());
    Ok(swept)
}

async fn reap(shared: &Shared, fronts: &[LaneFront], every: Duration, swept: &mut Swept) -> Result<(), StoreError> {
    let mut lanes: Vec<ReapLane> = {
        let mut memory = shared.lanes();
        let due = fronts.iter().filter(|front| front.claimed_at_front || front.claimable.is_some());
        let looked_at = due.filter(|front| {
            let every = if front.claimed_at_front { every } else { every.max(REAP_BEHIND_EVERY) };
            memory.begin_reap(&front.event_type, every)
        });
        looked_at.map(|front| ReapLane { event_type: front.event_type.clone(), after: None }).collect()
    };
    for _ in 0..MAX_REAP_PAGES {
        if lanes.is_empty() {
            break;
        }
        let page = shared.store.reap(&lanes, REAP_PAGE).await?;
        for reaped in page.reaped {
            swept.reaped += 1;
            shared.tally.note_reaped(&reaped);
            tracing::warn!(
                outbox = %shared.outbox,
                event_id = %reaped.event_id,
                event_type = %reaped.event_type,
                status = %reaped.status,
                "a claim expired: its worker died or lost the database"
            );
            if reaped.status == Status::DeadLetter {
                swept.dead.push(reaped.event_id);
            } else {
                shared.lanes().note_given_back(&reaped.event_type);
            }
        }
        lanes = page.unfinished;
    }
    Ok(())
}
