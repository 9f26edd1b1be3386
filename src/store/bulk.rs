//! Many dead letters at once: found page by page, changed chunk by chunk.
//!
//! Each page looks at a bounded number of rows and each chunk is one short conditional step, so nothing is held between
//! them and memory does not grow with the table. Whoever drops the future ends the work between two chunks; what has been
//! changed stays changed and is found no more, so the same request made again goes on. Two at once change each event once.

use std::time::{Duration, Instant};

use super::{Actor, DeadLetterFilter, DeadLetterPosition, Store, StoreError};
use crate::event::EventId;

/// Dead letters that one request may change.
pub const MAX_BULK: u32 = 10_000;
/// Dead letters in one step.
const CHUNK: u32 = 500;
/// Ids that an answer names as examples.
const SAMPLE: usize = 100;
/// After this long no further step begins; the answer then says `more`.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// These, as far as they are dead letters.
    Ids(Vec<EventId>),
    /// All that match, newest first, behind a place.
    Filter {
        /// What they have in common.
        filter: DeadLetterFilter,
        /// Where an earlier request has stopped.
        after: Option<DeadLetterPosition>,
    },
}

/// What becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkChange {
    /// `dead_letter` → pending, due at random instants within the next `spread`.
    Requeue {
        /// How far the due times are spread.
        spread: Duration,
    },
    /// `dead_letter` → skipped.
    Discard {
        /// Becomes their error; an empty one keeps what is there.
        reason: String,
    },
}

/// A change of many dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRequest {
    /// Which ones.
    pub selection: Selection,
    /// What becomes of them.
    pub change: BulkChange,
    /// Dead letters at most, 1–[`MAX_BULK`].
    pub limit: u32,
    /// Only counts what would be changed.
    pub dry_run: bool,
}

/// What a bulk change did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkReport {
    /// Dead letters that were found.
    pub matched: u64,
    /// Those that were changed: fewer when somebody else was faster or holds them locked, none in a dry run.
    pub changed: u64,
    /// Up to 100 of those that were changed, or in a dry run found.
    pub sample_ids: Vec<EventId>,
    /// Whether there is more behind what was looked at.
    pub more: bool,
    /// Where to go on, when there is more and a filter was given.
    pub next: Option<DeadLetterPosition>,
}

impl BulkReport {
    fn add(&mut self, found: &[EventId], changed: &[EventId], dry_run: bool) {
        self.matched += found.len() as u64;
        self.changed += changed.len() as u64;
        let examples = if dry_run { found } else { changed };
        let room = SAMPLE.saturating_sub(self.sample_ids.len());
        self.sample_ids.extend(examples.iter().take(room).cloned());
    }

    /// How many more may be found.
    fn room(&self, limit: u32) -> u32 {
        limit.saturating_sub(u32::try_from(self.matched).unwrap_or(u32::MAX))
    }
}

/// Changes dead letters, or counts them in a dry run.
///
/// # Errors
/// The store's. What earlier steps have changed stays changed.
pub async fn change_many(store: &dyn Store, request: &BulkRequest, by: &Actor) -> Result<BulkReport, StoreError> {
    let until = Instant::now() + PATIENCE;
    match &request.selection {
        Selection::Ids(ids) => change_ids(store, request, by, ids, until).await,
        Selection::Filter { filter, after } => change_matching(store, request, by, filter, after.clone(), until).await,
    }
}

async fn change_ids(
    store: &dyn Store,
    request: &BulkRequest,
    by: &Actor,
    ids: &[EventId],
    until: Instant,
) -> Result<BulkReport, StoreError> {
    let mut report = BulkReport::default();
    let mut ids = ids.to_vec();
    ids.sort();
    ids.dedup();
    for chunk in ids.chunks(CHUNK as usize) {
        if Instant::now() >= until {
            report.more = true;
            break;
        }
        let mut found = store.dead_letters_among(chunk).await?;
        let room = report.room(request.limit) as usize;
        report.more = found.len() > room;
        found.truncate(room);
        step(store, request, by, &found, &mut report).await?;
        if report.more {
            break;
        }
    }
    Ok(report)
}

async fn change_matching(
    store: &dyn Store,
    request: &BulkRequest,
    by: &Actor,
    filter: &DeadLetterFilter,
    after: Option<DeadLetterPosition>,
    until: Instant,
) -> Result<BulkReport, StoreError> {
    let mut report = BulkReport::default();
    let mut after = after;
    loop {
        let room = report.room(request.limit);
        // With no room left, one more tells whether there is more.
        let page = store.find_dead_letters(filter, after.as_ref(), room.clamp(1, CHUNK)).await?;
        if room == 0 {
            report.more = !page.ids.is_empty() || page.next.is_some();
            report.next = after.filter(|_| report.more);
            return Ok(report);
        }
        step(store, request, by, &page.ids, &mut report).await?;
        let Some(next) = page.next else { return Ok(report) };
        if Instant::now() >= until {
            return Ok(BulkReport { more: true, next: Some(next), ..report });
        }
        after = Some(next);
    }
}

async fn step(
    store: &dyn Store,
    request: &BulkRequest,
    by: &Actor,
    found: &[EventId],
    report: &mut BulkReport,
) -> Result<(), StoreError> {
    if found.is_empty() {
        return Ok(());
    }
    let changed =
        if request.dry_run { Vec::new() } else { store.change_dead_letters(found, &request.change, by).await? };
    report.add(found, &changed, request.dry_run);
    Ok(())
}
