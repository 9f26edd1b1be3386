//! What a run notes when a step has ended: events claimed, attempts ended, settlements written, lanes seen.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{Id, JoinError};

use super::{CLAIM_LINGER, CLOSING_OVERDUE, Claimed, OVERDUE, Run, SETTLE_LINGER, Started};
use crate::handler::{Delivery, Route};
use crate::lease::ClaimedEvent;
use crate::outcome::{Change, Outcome, Settlement};
use crate::processor::attempt::{Finished, attempt, timed_out};
use crate::processor::in_flight::Hold;
use crate::processor::settler::{Fate, Settled};
use crate::processor::spans;
use crate::processor::sweep::Swept;
use crate::store::{LaneClaim, Position, StoreError};

/// What a claim has brought of one lane.
struct Brought {
    route: Option<Arc<Route>>,
    hold: Hold,
    count: u32,
    last: Option<Position>,
}

impl Run {
    /// Starts every claimed event at once, so that no lease ages in a queue.
    pub(super) fn note_claimed(&mut self, claimed: Claimed) {
        let Claimed { begun, lanes, holds, mut slots, grant, result } = claimed;
        self.claim_from = Instant::now() + CLAIM_LINGER;
        let total: usize = lanes.iter().map(|lane| lane.limit as usize).sum();
        let events = match result {
            Ok(events) => events,
            Err(error) => {
                self.failure.get_or_insert(error);
                return;
            }
        };
        self.share.settle(grant, events.len() as u64);
        self.report.claimed += events.len() as u64;
        let was_short = events.len() < total;
        // A claim that brought nothing at all has met rows that others have locked: another sweep would find them again.
        self.wants_sweep |= was_short && !events.is_empty();
        self.subject_drained = self.request.subject.is_some() && was_short;
        let mut brought = self.what_was_claimed(&lanes, holds, &events);
        if self.request.subject.is_none() {
            let mut memory = self.shared.lanes();
            for lane in &lanes {
                let own = brought.get(lane.event_type.as_str());
                let (count, last) = own.map_or((0, None), |own| (own.count, own.last.clone()));
                memory.note_claim(&lane.event_type, begun, last, count < lane.limit);
            }
        }
        // The database works on the next claim while these are started.
        self.begin_claim();
        for event in events {
            let (route, hold) = match brought.get_mut(event.event_type.as_str()) {
                Some(lane) => (lane.route.clone(), lane.hold.split()),
                None => (None, None),
            };
            match slots.split(1) {
                Some(slot) => self.start_or_release(event, route, slot, hold),
                None => self.release(&event),
            }
        }
    }

    /// What the claim has brought of each lane.
    fn what_was_claimed<'a>(
        &self,
        lanes: &'a [LaneClaim],
        holds: Vec<Hold>,
        events: &[ClaimedEvent],
    ) -> HashMap<&'a str, Brought> {
        let memory = self.shared.lanes();
        let each = lanes.iter().zip(holds).map(|(lane, hold)| {
            let route = memory.route_for(&lane.event_type);
            (lane.event_type.as_str(), Brought { route, hold, count: 0, last: None })
        });
        let mut brought: HashMap<&str, Brought> = each.collect();
        for event in events {
            if let Some(lane) = brought.get_mut(event.event_type.as_str()) {
                lane.count += 1;
                lane.last = lane.last.take().max(Some(position(event)));
            }
        }
        brought
    }

    fn start_or_release(
        &mut self,
        event: ClaimedEvent,
        route: Option<Arc<Route>>,
        slot: OwnedSemaphorePermit,
        hold: Option<Hold>,
    ) {
        match route {
            Some(route) if !self.stopping && self.countdown.remaining() >= route.timeout => {
                self.start(event, route, slot, hold);
            }
            Some(_) | None => self.release(&event),
        }
    }

    fn start(&mut self, event: ClaimedEvent, route: Arc<Route>, slot: OwnedSemaphorePermit, hold: Option<Hold>) {
        let span = spans::of_attempt(&self.shared, &event);
        let mut delivery = Delivery::start(event, route.timeout).with_span(span);
        if let Some(key) = self.shared.claim_key.get() {
            delivery = delivery.with_claim_key(key.clone());
        }
        let delivery = Arc::new(delivery);
        let max_payload_bytes = self.shared.store.max_payload_bytes();
        let cut_off = self.shared.cut_off.clone();
        let work = attempt(Arc::clone(&delivery), Arc::clone(&route), max_payload_bytes, slot, cut_off);
        let id = self.handlers.spawn(work).id();
        self.started.insert(id, Started { delivery, route, _hold: hold });
    }

    fn release(&mut self, event: &ClaimedEvent) {
        self.finished.push(Settlement { lease: event.lease.clone(), change: Change::Release, attempt: None });
    }

    /// Takes the outcome of a handler that has ended, and of all others that have ended meanwhile.
    pub(super) fn note_ended(&mut self, ended: Result<(Id, Finished), JoinError>) {
        let mut ended = Some(ended);
        while let Some(result) = ended {
            match result {
                Ok((id, finished)) => {
                    if self.started.remove(&id).is_some() {
                        self.note_outcome(&finished);
                    }
                }
                Err(error) => {
                    if let Some(started) = self.started.remove(&error.id()) {
                        self.note_outcome(&outcome_of(started, Outcome::retry("the handler's task failed")));
                    }
                }
            }
            ended = self.handlers.try_join_next_with_id();
        }
    }

    /// Gives up on handlers that did not even yield at their deadline; whatever they say later is not heard.
    pub(super) fn note_overdue(&mut self) {
        self.watched_at = Instant::now();
        let is_closing = self.countdown.remaining() <= CLOSING_OVERDUE;
        let overdue = if is_closing { CLOSING_OVERDUE } else { OVERDUE };
        let late: Vec<Id> = self
            .started
            .iter()
            .filter(|(_, started)| started.delivery.elapsed() > started.route.timeout + overdue)
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            if let Some(started) = self.started.remove(&id) {
                tracing::error!(route = %started.route.name, "a handler blocks its thread and was given up");
                let outcome = timed_out(&started.route);
                self.note_outcome(&outcome_of(started, outcome));
            }
        }
    }

    fn note_outcome(&mut self, finished: &Finished) {
        finished.log(&self.shared.outbox);
        spans::attempt_ended(&self.shared, finished);
        if self.finished.is_empty() {
            self.settle_from = Instant::now() + SETTLE_LINGER;
        }
        let settlement = finished.settlement(self.shared.settings.log_all_attempts);
        finished.count(&self.shared.tally, settlement.as_ref());
        match settlement {
            Some(settlement) => self.finished.push(settlement),
            None if finished.outcome == Outcome::Accepted => self.report.accepted += 1,
            None => self.report.completed += 1,
        }
    }

    /// Counts what was written and what came too late.
    pub(super) fn note_settled(&mut self, settled: Settled) {
        for (settlement, fate) in &settled.settlements {
            match fate {
                Fate::Applied => self.count(settlement),
                // Whatever becomes of it, this run will not know.
                Fate::Later => self.report.lease_lost += 1,
                Fate::Lost => {
                    self.report.lease_lost += 1;
                    let (event_id, claim_no) = (&settlement.lease.event_id, settlement.lease.claim_no);
                    tracing::warn!(%event_id, claim_no, "a settlement changed nothing: its lease was lost");
                }
            }
        }
        if let Some(error) = settled.failure {
            self.failure.get_or_insert(error);
        }
    }

    fn count(&mut self, settlement: &Settlement) {
        let report = &mut self.report;
        match &settlement.change {
            Change::Complete => report.completed += 1,
            Change::Retry { .. } => report.retried += 1,
            Change::Defer { .. } => report.deferred += 1,
            Change::Skip { .. } => report.skipped += 1,
            Change::Release => report.released += 1,
            Change::DeadLetter { .. } => {
                report.dead_lettered += 1;
                report.note_dead_letter(settlement.lease.event_id.clone());
            }
        }
    }

    /// Takes over what a sweep has seen.
    pub(super) fn note_swept(&mut self, swept: Result<Swept, StoreError>) {
        self.has_swept = true;
        match swept {
            Ok(swept) => {
                self.types.clone_from(&swept.types);
                self.note_reaped(swept);
                self.subject_drained = false;
            }
            Err(error) => _ = self.failure.get_or_insert(error),
        }
    }

    /// Counts what a sweep took back.
    pub(super) fn note_reaped(&mut self, swept: Swept) {
        self.report.reaped += swept.reaped;
        swept.dead.into_iter().for_each(|id| self.report.note_dead_letter(id));
    }
}

fn position(event: &ClaimedEvent) -> Position {
    Position { available_at: event.available_at, id: event.lease.event_id.clone() }
}

fn outcome_of(started: Started, outcome: Outcome) -> Finished {
    let took: Duration = started.delivery.elapsed();
    Finished { delivery: started.delivery, route: started.route, outcome, took }
}
