//! What stands in the lanes, counted at a cost that does not grow with the table.
//!
//! The lanes are found by an index. Each then gets a small count; those that have more than that share what is left of a
//! budget of rows. So four deep lanes are each counted up to [`MOST_COUNTED`], and a thousand of them cost no more than they do.
//! The age of a lane's oldest due event is read from the index and always exact.

use async_trait::async_trait;

use super::StoreError;
use crate::timestamp::Timestamp;

/// Where a count of one lane stops.
pub const MOST_COUNTED: u32 = 100_000;
/// Lanes of one outbox that are counted.
pub const MOST_LANES: usize = 1_000;
/// Lanes that one statement finds.
const LANES_FOUND: usize = 200;
/// Lanes that one statement counts.
const LANES_COUNTED: usize = 50;
/// Rows that all first counts look at.
const FIRST_ROWS: u32 = 150_000;
/// Rows that the long counts share: some hundred megabytes at most where nothing is in memory yet.
const LONG_ROWS: u32 = 400_000;
/// The first count of a lane stops here, where there are few lanes.
const FIRST_COUNT: u32 = 1_000;
/// Due and processing events are one count, scheduled ones another, dead letters the third.
const COUNTS: u32 = 3;

/// What stands in the lanes of one outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// When it was counted, by the database's clock.
    pub as_of: Timestamp,
    /// Every lane with live events or dead letters, in the order of their types; at most [`MOST_LANES`].
    pub lanes: Vec<LaneStats>,
    /// Whether there are more lanes than that.
    pub has_more_lanes: bool,
}

/// What stands in one lane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaneStats {
    /// The lane.
    pub event_type: String,
    /// Pending events whose time has come.
    pub due: u64,
    /// Pending events whose time has not come.
    pub scheduled: u64,
    /// Events in somebody's hands.
    pub processing: u64,
    /// Events that were given up.
    pub dead_letter: u64,
    /// How long the oldest due event has been due, in microseconds; `None` when nothing is due.
    pub oldest_due_micros: Option<i64>,
    /// Whether a count has stopped before its end.
    pub capped: bool,
}

/// Lanes by name, and when.
pub(super) struct Lanes {
    pub(super) as_of: Timestamp,
    pub(super) types: Vec<String>,
}

/// Where the counts of a lane stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Due and processing events.
    pub(super) due: u32,
    pub(super) scheduled: u32,
    pub(super) dead_letter: u32,
}

impl Limits {
    fn all(limit: u32) -> Self {
        Self { due: limit, scheduled: limit, dead_letter: limit }
    }

    /// Which counts have stopped at them.
    fn reached(self, lane: &LaneStats) -> [bool; COUNTS as usize] {
        let due = lane.due + lane.processing >= u64::from(self.due);
        [due, lane.scheduled >= u64::from(self.scheduled), lane.dead_letter >= u64::from(self.dead_letter)]
    }

    /// Raises those that were reached.
    fn raise(self, reached: [bool; COUNTS as usize], limit: u32) -> Self {
        let [due, scheduled, dead_letter] = reached;
        let raised = |is_reached: bool, now: u32| if is_reached { limit.max(now) } else { now };
        Self {
            due: raised(due, self.due),
            scheduled: raised(scheduled, self.scheduled),
            dead_letter: raised(dead_letter, self.dead_letter),
        }
    }
}

/// The two statements that a database counts by.
#[async_trait]
pub(super) trait Counting: Sync {
    /// Types with live events or dead letters behind this one, in their order; at most so many.
    async fn lanes(&self, after: &str, limit: usize) -> Result<Lanes, StoreError>;

    /// Counts in these lanes, each count up to its limit. `capped` is left to the caller.
    async fn count(&self, types: &[String], limits: Limits) -> Result<Vec<LaneStats>, StoreError>;
}

/// Counts all lanes.
pub(super) async fn collect(store: &impl Counting) -> Result<Stats, StoreError> {
    let (as_of, mut types) = find(store).await?;
    let has_more_lanes = types.len() > MOST_LANES;
    types.truncate(MOST_LANES);
    let each = FIRST_ROWS / COUNTS / u32::try_from(types.len().max(1)).unwrap_or(u32::MAX);
    let first = Limits::all(each.clamp(1, FIRST_COUNT));
    let mut lanes = Vec::with_capacity(types.len());
    for page in types.chunks(LANES_COUNTED) {
        lanes.extend(store.count(page, first).await?);
    }
    let long = |lane: &LaneStats| first.reached(lane).contains(&true);
    let mut waiting: u32 = lanes.iter().map(|lane| counted(first.reached(lane))).sum();
    let mut rows = LONG_ROWS;
    for lane in lanes.iter_mut().filter(|lane| long(lane)) {
        let reached = first.reached(lane);
        let share = (rows / waiting.max(1)).min(MOST_COUNTED);
        let limits = first.raise(reached, share);
        // A lane may have come to its end meanwhile; its first count is as good as none.
        let again = store.count(std::slice::from_ref(&lane.event_type), limits).await?;
        *lane = again.into_iter().next().unwrap_or_else(|| empty(lane));
        lane.capped = limits.reached(lane).contains(&true);
        waiting = waiting.saturating_sub(counted(reached));
        rows = rows.saturating_sub(looked_at(lane, reached));
    }
    lanes.retain(|lane| lane.due + lane.scheduled + lane.processing + lane.dead_letter > 0);
    Ok(Stats { as_of, lanes, has_more_lanes })
}

async fn find(store: &impl Counting) -> Result<(Timestamp, Vec<String>), StoreError> {
    let mut types: Vec<String> = Vec::new();
    loop {
        let after = types.last().map_or("", String::as_str);
        let found = store.lanes(after, LANES_FOUND).await?;
        let is_all = found.types.len() < LANES_FOUND;
        types.extend(found.types);
        if is_all || types.len() > MOST_LANES {
            return Ok((found.as_of, types));
        }
    }
}

fn counted(reached: [bool; COUNTS as usize]) -> u32 {
    reached.into_iter().map(u32::from).sum()
}

/// Rows that a long count has looked at.
fn looked_at(lane: &LaneStats, reached: [bool; COUNTS as usize]) -> u32 {
    let counts = [lane.due + lane.processing, lane.scheduled, lane.dead_letter];
    let rows = counts.into_iter().zip(reached).filter(|(_, is_long)| *is_long).map(|(count, _)| count).sum::<u64>();
    u32::try_from(rows).unwrap_or(u32::MAX)
}

fn empty(lane: &LaneStats) -> LaneStats {
    LaneStats { event_type: lane.event_type.clone(), ..LaneStats::default() }
}

/// What one pass over an adopted table has counted, up to [`MOST_COUNTED`] in each state. One that has come to its limit may
/// have left out events of any lane.
pub(super) fn of_one_pass(as_of: Timestamp, mut lanes: Vec<LaneStats>) -> Stats {
    let sum = |count: fn(&LaneStats) -> u64| lanes.iter().map(count).sum::<u64>();
    let sums = [sum(|lane| lane.due + lane.scheduled), sum(|lane| lane.processing), sum(|lane| lane.dead_letter)];
    let is_capped = sums.iter().any(|sum| *sum >= u64::from(MOST_COUNTED));
    for lane in &mut lanes {
        lane.capped = is_capped;
    }
    let has_more_lanes = lanes.len() > MOST_LANES;
    lanes.truncate(MOST_LANES);
    Stats { as_of, lanes, has_more_lanes }
}
