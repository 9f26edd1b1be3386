//! What was counted, as it is shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Snapshot;
use crate::processor::Processor;
use crate::run::RunRecord;
use crate::store::{LaneStats, Minute};
use crate::timestamp::Timestamp;

/// What stands in the lanes of one outbox or of all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Stats)]
pub struct StatsView {
    /// When the counts were made, by the database's clock; of several outboxes, those that are oldest.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub as_of: Option<Timestamp>,
    /// The outboxes that were asked for, in the order of the settings.
    #[serde(default)]
    #[schema(required = true)]
    pub outboxes: Vec<String>,
    /// Those of them whose table could not be counted: nothing below speaks of them. `outboxd doctor` says why.
    #[serde(default)]
    #[schema(required = true)]
    pub uncounted: Vec<String>,
    /// Every lane with live events or dead letters, at most 1,000 of each outbox.
    pub lanes: Vec<LaneView>,
    /// Whether an outbox has more lanes than that.
    #[serde(default)]
    #[schema(required = true)]
    pub more_lanes: bool,
    /// The newest run; null when there was none within 7 days.
    #[schema(required = true)]
    pub last_run: Option<RunRecord>,
    /// What ended in each of the last 60 minutes in which anything did, oldest first.
    #[serde(default)]
    #[schema(required = true)]
    pub last_hour: Vec<MinuteView>,
}

/// What stands in one lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LaneStats)]
pub struct LaneView {
    /// Whose lane it is.
    pub outbox: String,
    /// The lane's type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Pending events whose time has come.
    pub due: u64,
    /// Pending events whose time has not come.
    pub scheduled: u64,
    /// Events in somebody's hands.
    pub processing: u64,
    /// Events that were given up.
    pub dead_letter: u64,
    /// How long the oldest due event has been due; null when nothing is.
    #[schema(required = true)]
    pub oldest_due_age_ms: Option<u64>,
    /// Whether a route takes events of this type; null where the routes cannot be told.
    #[schema(value_type = bool, required = true)]
    pub routed: Option<bool>,
    /// Whether a count has stopped before its end, at 100,000 or earlier.
    pub capped: bool,
}

/// One minute of one outbox, of all instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MinuteStats)]
pub struct MinuteView {
    /// Whose events they were.
    pub outbox: String,
    /// What ended.
    #[serde(flatten)]
    pub minute: Minute,
}

impl LaneView {
    /// A lane as it was counted.
    #[must_use]
    pub fn new(outbox: &str, lane: &LaneStats, routed: Option<bool>) -> Self {
        let age = lane.oldest_due_micros.map(|micros| u64::try_from(micros / 1_000).unwrap_or(0));
        Self {
            outbox: outbox.to_owned(),
            event_type: lane.event_type.clone(),
            due: lane.due,
            scheduled: lane.scheduled,
            processing: lane.processing,
            dead_letter: lane.dead_letter,
            oldest_due_age_ms: age,
            routed,
            capped: lane.capped,
        }
    }
}

impl StatsView {
    /// The snapshots as they are shown.
    pub(super) fn of<'a>(snapshots: impl IntoIterator<Item = (&'a Processor, Option<&'a Snapshot>)>) -> Self {
        let mut view = Self::default();
        for (processor, snapshot) in snapshots {
            let outbox = processor.outbox();
            view.outboxes.push(outbox.to_owned());
            let Some(snapshot) = snapshot else {
                view.uncounted.push(outbox.to_owned());
                continue;
            };
            let as_of = snapshot.stats.as_of;
            view.as_of = Some(view.as_of.map_or(as_of, |oldest| oldest.min(as_of)));
            view.lanes.extend(snapshot.stats.lanes.iter().map(|lane| {
                LaneView::new(outbox, lane, Some(processor.registry().route_for(&lane.event_type).is_some()))
            }));
            view.more_lanes |= snapshot.stats.has_more_lanes;
            let is_newer =
                |run: &&RunRecord| view.last_run.as_ref().is_none_or(|known| run.started_at > known.started_at);
            if let Some(run) = snapshot.last_run.as_ref().filter(is_newer) {
                view.last_run = Some(run.clone());
            }
            let minutes = snapshot.minutes.iter();
            view.last_hour.extend(minutes.map(|minute| MinuteView { outbox: outbox.to_owned(), minute: *minute }));
        }
        view.last_hour.sort_by_key(|minute| minute.minute.minute);
        view
    }
}
