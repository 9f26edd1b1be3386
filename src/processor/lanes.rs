//! What an instance remembers of the lanes, across runs: how far it has come in each, and which held something.
//!
//! All of it is hints. A position that is too far ahead is put right by the next sweep, which looks from the front.
//! Positions are what keeps the rate when a long transaction elsewhere holds back vacuum: a claim begins behind the
//! dead entries of what was delivered before, not in front of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::handler::{Registry, Route};
use crate::store::{LaneFront, Position};
use crate::timestamp::Timestamp;

/// How often a run looks at the front of the lanes while it goes on.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Sweeps that take no longer than this are never put off.
const CHEAP_SWEEP: Duration = Duration::from_millis(5);
/// Sweeps may take at most this share of the time: one in so many.
const SWEEP_SHARE: u32 = 40;

/// One lane as it was last seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    /// Who takes its events, if anybody does. Routes do not change while an instance lives.
    pub(super) route: Option<Arc<Route>>,
    /// Where the next claim begins.
    pub(super) position: Option<Position>,
    /// Whether it held something to claim when it was last looked at.
    pub(super) claimable: bool,
    /// When its next event becomes due.
    pub(super) next_due_at: Option<Timestamp>,
    /// When a survey last looked at it; what was claimed before that knows less.
    surveyed_at: Option<Instant>,
    /// When its expired leases were last looked for.
    reaped_at: Option<Instant>,
}

/// All lanes with live events.
#[derive(Debug)]
pub(super) struct Lanes {
    registry: Arc<Registry>,
    by_type: BTreeMap<String, Lane>,
    swept: Option<Swept>,
    /// Where the next survey goes on; `None` begins at the front.
    pub(super) survey_after: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Swept {
    at: Instant,
    took: Duration,
}

impl Lanes {
    /// Knows nothing yet.
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, by_type: BTreeMap::new(), swept: None, survey_after: None }
    }

    /// Whether a sweep may run again, so that all of them together take at most a fortieth of the time.
    pub(super) fn may_sweep(&self) -> bool {
        self.swept.is_none_or(|swept| {
            swept.took <= CHEAP_SWEEP || swept.at.elapsed() >= swept.took.saturating_mul(SWEEP_SHARE)
        })
    }

    /// Whether a sweep takes so long that a run should not wait for it before it claims.
    pub(super) fn sweeps_are_slow(&self) -> bool {
        self.swept.is_some_and(|swept| swept.took > CHEAP_SWEEP)
    }

    /// When a run that goes on should sweep again.
    pub(super) fn next_sweep(&self) -> Instant {
        self.swept.map_or_else(Instant::now, |swept| swept.at + SWEEP_EVERY.max(swept.took.saturating_mul(SWEEP_SHARE)))
    }

    /// Notes that a sweep has just ended.
    pub(super) fn note_sweep(&mut self, took: Duration) {
        self.swept = Some(Swept { at: Instant::now(), took });
    }

    /// Replaces what was known of the types behind `after` up to the last one surveyed, or of all of them when the
    /// survey came to the end.
    pub(super) fn note_survey(&mut self, after: Option<&str>, fronts: &[LaneFront], to_the_end: bool) {
        let last = fronts.last().map(|front| front.event_type.as_str());
        self.by_type.retain(|event_type, _| {
            let before = after.is_some_and(|after| event_type.as_str() <= after);
            let beyond = !to_the_end && last.is_none_or(|last| event_type.as_str() > last);
            before || beyond || fronts.binary_search_by(|front| front.event_type.as_str().cmp(event_type)).is_ok()
        });
        for front in fronts {
            let lane = self.by_type.entry(front.event_type.clone()).or_insert_with(|| {
                let route = self.registry.route_for(&front.event_type).cloned();
                Lane { route, ..Lane::default() }
            });
            lane.claimable = front.claimable.is_some();
            lane.position = front.claimable.clone().or_else(|| lane.position.take());
            lane.next_due_at = front.next_due_at;
            lane.surveyed_at = Some(Instant::now());
        }
    }

    /// Whether it is time to look for expired leases in this lane again; if so, notes that it is done now.
    pub(super) fn begin_reap(&mut self, event_type: &str, every: Duration) -> bool {
        // Another run may have seen the lane end meanwhile.
        let Some(lane) = self.by_type.get_mut(event_type) else { return true };
        let due = lane.reaped_at.is_none_or(|at| at.elapsed() >= every);
        if due {
            lane.reaped_at = Some(Instant::now());
        }
        due
    }

    /// Notes that a reap gave events back to this lane.
    pub(super) fn note_given_back(&mut self, event_type: &str) {
        if let Some(lane) = self.by_type.get_mut(event_type) {
            lane.claimable = true;
        }
    }

    /// Notes how far a claim that began at `begun` has come; one that brought less than it could take has found the lane's
    /// end. A survey that ended since has seen more, perhaps an event that came late behind the claim's back.
    pub(super) fn note_claim(&mut self, event_type: &str, begun: Instant, last: Option<Position>, was_short: bool) {
        let lane = self.by_type.get_mut(event_type);
        if let Some(lane) = lane.filter(|lane| lane.surveyed_at.is_none_or(|at| at <= begun)) {
            lane.position = lane.position.take().max(last);
            lane.claimable = !was_short;
        }
    }

    /// Forgets that lanes were found empty, for a run that may not sweep: what came since lies behind the positions.
    pub(super) fn assume_claimable(&mut self) {
        self.by_type.values_mut().for_each(|lane| lane.claimable = true);
    }

    /// Who takes events of this type, if anybody does.
    pub(super) fn route_for(&self, event_type: &str) -> Option<Arc<Route>> {
        match self.by_type.get(event_type) {
            Some(lane) => lane.route.clone(),
            None => self.registry.route_for(event_type).cloned(),
        }
    }

    /// The lanes in the order of their types.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Lane)> {
        self.by_type.iter().map(|(event_type, lane)| (event_type.as_str(), lane))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(micros: i64) -> Position {
        Position { available_at: Timestamp::from_micros(micros), id: Uuid::nil().into() }
    }

    fn front(event_type: &str, claimable: Option<Position>) -> LaneFront {
        LaneFront { event_type: event_type.to_owned(), claimed_at_front: false, claimable, next_due_at: None }
    }

    fn nothing_known() -> Lanes {
        Lanes::new(Arc::new(Registry::new(Vec::new()).unwrap()))
    }

    fn types(lanes: &Lanes) -> Vec<&str> {
        lanes.iter().map(|(event_type, _)| event_type).collect()
    }

    #[test]
    fn a_claim_moves_the_position_on_and_a_survey_puts_it_back() {
        let mut lanes = nothing_known();
        lanes.note_survey(None, &[front("a", Some(at(5)))], true);
        lanes.note_claim("a", Instant::now(), Some(at(9)), false);
        lanes.note_claim("a", Instant::now(), Some(at(7)), false);
        assert_eq!(lanes.iter().next().map(|(_, lane)| lane.position.clone()), Some(Some(at(9))));
        lanes.note_survey(None, &[front("a", Some(at(6)))], true);
        assert_eq!(lanes.iter().next().map(|(_, lane)| lane.position.clone()), Some(Some(at(6))));
    }

    #[test]
    fn a_lane_that_came_back_short_is_drained_until_the_next_survey() {
        let mut lanes = nothing_known();
        lanes.note_survey(None, &[front("a", Some(at(5)))], true);
        lanes.note_claim("a", Instant::now(), None, true);
        assert!(lanes.iter().all(|(_, lane)| !lane.claimable));
        lanes.note_survey(None, &[front("a", Some(at(8)))], true);
        assert!(lanes.iter().all(|(_, lane)| lane.claimable));
    }

    #[test]
    fn a_claim_that_began_before_a_survey_does_not_undo_what_the_survey_saw() {
        let mut lanes = nothing_known();
        let begun = Instant::now();
        lanes.note_survey(None, &[front("a", Some(at(5)))], true);
        lanes.note_claim("a", begun, Some(at(9)), true);
        let seen = lanes.iter().next().map(|(_, lane)| (lane.position.clone(), lane.claimable));
        assert_eq!(seen, Some((Some(at(5)), true)));
    }

    #[test]
    fn a_survey_forgets_only_lanes_in_the_range_it_looked_at() {
        let mut lanes = nothing_known();
        lanes.note_survey(None, &[front("a", None), front("b", None), front("c", None), front("d", None)], true);
        lanes.note_survey(Some("a"), &[front("c", None)], false);
        assert_eq!(types(&lanes), ["a", "c", "d"]);
        lanes.note_survey(Some("c"), &[], true);
        assert_eq!(types(&lanes), ["a", "c"]);
    }

    #[test]
    fn slow_sweeps_are_spaced_and_cheap_ones_are_not() {
        let mut lanes = nothing_known();
        assert!(lanes.may_sweep());
        lanes.note_sweep(Duration::from_secs(10));
        assert!(!lanes.may_sweep() && lanes.sweeps_are_slow());
        lanes.note_sweep(Duration::from_millis(1));
        assert!(lanes.may_sweep() && !lanes.sweeps_are_slow());
    }
}
