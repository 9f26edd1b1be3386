//! What to claim next: which lanes are eligible, and how the free slots are shared among them.
//!
//! Eligibility is judged before anything is counted, so that what cannot run now costs the others nothing: a type that
//! the caller did not ask for, one without a route, one whose handler does not fit the remaining time. The free slots
//! go round among the eligible lanes. The last sixteenth of an instance's slots is kept for lanes that hold next to
//! nothing, so that no backlog, nor several of them, in one run or in many, can keep another type waiting.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::lanes::Lanes;
use super::{ProcessorSettings, RunRequest};
use crate::budget::Countdown;
use crate::handler::Route;
use crate::store::LaneClaim;

/// Lanes that one claim asks at most; with more, the next claim asks the others.
const MAX_LANES: usize = 256;
/// The share of the slots that is kept for lanes which hold next to nothing: one in so many.
const RESERVED_SHARE: usize = 16;

/// How the lanes with something to claim stand to a run.
#[derive(Default)]
pub(super) struct Eligibility {
    /// May be claimed from now, with limits to be shared out yet.
    pub(super) eligible: Vec<LaneClaim>,
    /// Would have fitted when the run began, but no longer do.
    pub(super) too_late: BTreeSet<String>,
    /// Do not fit the budget at all.
    pub(super) unfit: BTreeSet<String>,
}

/// Whether the run's caller asked for this type.
pub(super) fn is_wanted(request: &RunRequest, event_type: &str) -> bool {
    request.types.is_empty() || request.types.iter().any(|wanted| wanted == event_type)
}

/// Judges every lane that holds something.
pub(super) fn eligibility(
    lanes: &Lanes,
    request: &RunRequest,
    countdown: &Countdown,
    settings: &ProcessorSettings,
) -> Eligibility {
    let mut result = Eligibility::default();
    for (event_type, lane) in lanes.iter().filter(|(event_type, lane)| lane.claimable && is_wanted(request, event_type))
    {
        let Some(route) = &lane.route else { continue };
        if countdown.fits(route.timeout) {
            let lease = settings.lease_for(route.timeout);
            let event_type = event_type.to_owned();
            result.eligible.push(LaneClaim { event_type, limit: 0, from: lane.position.clone(), lease });
        } else if countdown.fitted_at_start(route.timeout) {
            result.too_late.insert(event_type.to_owned());
        } else {
            result.unfit.insert(event_type.to_owned());
        }
    }
    result
}

/// Every lane that the run could have claimed from at its start, whether it holds something or not, for a peek.
pub(super) fn all_fitting(lanes: &Lanes, request: &RunRequest, countdown: &Countdown) -> Vec<LaneClaim> {
    let fits = |route: &Arc<Route>| countdown.fitted_at_start(route.timeout);
    lanes
        .iter()
        .filter(|(event_type, lane)| is_wanted(request, event_type) && lane.route.as_ref().is_some_and(fits))
        .map(|(event_type, lane)| LaneClaim {
            event_type: event_type.to_owned(),
            limit: 1,
            from: lane.position.clone(),
            lease: Duration::ZERO,
        })
        .collect()
}

/// The slots that a claim may fill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// All of them.
    free: usize,
    /// Those of them that are kept for lanes which hold next to nothing.
    reserved: usize,
    /// How much a lane may hold and still use those.
    foothold: usize,
}

impl Room {
    /// `free` slots are at hand, and `others` are free beside them, of `concurrency` altogether.
    pub(super) fn new(free: usize, others: usize, concurrency: usize) -> Self {
        // Very few slots are all for whoever comes first.
        let reserve = (concurrency / RESERVED_SHARE).max(usize::from(concurrency >= RESERVED_SHARE / 2));
        Self { free, reserved: reserve.saturating_sub(others).min(free), foothold: (reserve / 2).max(1) }
    }
}

/// Shares free slots among the lanes, beginning with another lane each `turn`. `in_flight` counts what the instance
/// already has of each type.
pub(super) fn share(
    mut lanes: Vec<LaneClaim>,
    room: Room,
    turn: usize,
    in_flight: impl Fn(&str) -> usize,
) -> Vec<LaneClaim> {
    let (mut common, mut reserved) = (room.free - room.reserved, room.reserved);
    let foothold = |claim: &LaneClaim| room.foothold.saturating_sub(in_flight(&claim.event_type));
    lanes.retain(|claim| common > 0 || foothold(claim) > 0);
    if lanes.is_empty() {
        return Vec::new();
    }
    let first = turn % lanes.len();
    lanes.rotate_left(first);
    lanes.truncate(room.free.min(MAX_LANES));
    let mut waiting = lanes.len();
    for claim in &mut lanes {
        let fair = common.div_ceil(waiting);
        let kept = foothold(claim).saturating_sub(fair).min(reserved);
        common -= fair;
        reserved -= kept;
        waiting -= 1;
        claim.limit = u32::try_from(fair + kept).unwrap_or(u32::MAX);
    }
    lanes.retain(|claim| claim.limit > 0);
    lanes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn eligible(names: &[&str]) -> Vec<LaneClaim> {
        let claim = |name: &&str| LaneClaim {
            event_type: (*name).to_owned(),
            limit: 0,
            from: None,
            lease: Duration::from_secs(60),
        };
        names.iter().map(claim).collect()
    }

    fn shares(claims: &[LaneClaim]) -> Vec<(&str, u32)> {
        claims.iter().map(|claim| (claim.event_type.as_str(), claim.limit)).collect()
    }

    fn nothing(_: &str) -> usize {
        0
    }

    fn room(free: usize) -> Room {
        Room::new(free, 0, 64)
    }

    #[test]
    fn free_slots_go_round() {
        let claims = share(eligible(&["a", "b", "c"]), Room::new(8, 56, 64), 1, nothing);
        assert_eq!(shares(&claims), [("b", 3), ("c", 3), ("a", 2)]);
    }

    #[test]
    fn with_fewer_slots_than_lanes_another_lane_begins_each_turn() {
        let first = |turn| share(eligible(&["a", "b", "c"]), room(1), turn, nothing).remove(0).event_type;
        assert_eq!([first(0), first(1), first(2), first(3)], ["a", "b", "c", "a"]);
    }

    #[test]
    fn the_last_sixteenth_is_kept_for_lanes_that_hold_next_to_nothing() {
        assert_eq!(shares(&share(eligible(&["a"]), room(64), 0, nothing)), [("a", 60)]);
        assert_eq!(shares(&share(eligible(&["a", "b"]), room(64), 0, nothing)), [("a", 30), ("b", 30)]);
        let flood = |event_type: &str| if event_type == "c" { 0 } else { 30 };
        assert_eq!(shares(&share(eligible(&["a", "b"]), room(4), 0, flood)), []);
        assert_eq!(shares(&share(eligible(&["a", "b", "c"]), room(4), 0, flood)), [("c", 2)]);
        assert_eq!(shares(&share(eligible(&["a", "b", "c"]), room(6), 0, flood)), [("a", 1), ("b", 1), ("c", 2)]);
        assert_eq!(shares(&share(eligible(&["a"]), Room::new(8, 0, 8), 0, nothing)), [("a", 7)]);
        assert_eq!(shares(&share(eligible(&["a"]), Room::new(4, 0, 4), 0, nothing)), [("a", 4)]);
    }

    proptest! {
        #[test]
        fn no_more_is_claimed_than_is_free(
            count in 0_usize..600, free in 0_usize..2_000, turn in 0_usize..5_000, concurrency in 1_usize..2_000,
        ) {
            let names: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let claims = share(eligible(&names), Room::new(free, 0, concurrency), turn, nothing);
            let sum: usize = claims.iter().map(|claim| claim.limit as usize).sum();
            prop_assert!(sum <= free);
            prop_assert!(sum > 0 || count == 0 || free == 0);
        }
    }
}
