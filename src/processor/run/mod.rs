//! One run, read downwards: sweep; then claim, start, settle and sweep again, each as soon as it can; then report.
//!
//! At most one claim, one sweep and two settlements are under way at a time, beside the handlers. What finishes while a
//! settlement is under way goes into the next one, which waits for the first one's end unless much has finished: then both
//! are written side by side. The loop ends when nothing is under way and nothing can begin, in no outbox of the run.

mod begin;
mod ended;
mod finish;
mod note;

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(super) use self::ended::{Ended, lost_after};
use super::attempt::Finished;
use super::batch::{Grant, Share};
use super::in_flight::Hold;
use super::settler::Settled;
use super::slots::Hungry;
use super::spans::RunSpan;
use super::sweep::{Swept, sweep};
use super::{RunError, RunRequest, Shared};
use crate::budget::Countdown;
use crate::handler::{Delivery, Route};
use crate::lease::ClaimedEvent;
use crate::outcome::Settlement;
use crate::run::{RunReport, StopReason};
use crate::store::{LaneClaim, StoreError};

/// How long a run waits for more company before it claims only a few while handlers are running. A handler that takes no
/// time ends a moment after its neighbour; without this each would cost a statement of its own. Slots lie idle meanwhile.
const CLAIM_LINGER: Duration = Duration::from_millis(1);
/// The same before it settles: nothing lies idle meanwhile.
const SETTLE_LINGER: Duration = Duration::from_millis(3);
/// How often a run looks for handlers that have outstayed their time although it was theirs to notice.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How much later than its deadline a run counts a handler as gone that does not even yield.
const OVERDUE: Duration = Duration::from_secs(2);
/// The same when the budget is about to end: what is overdue by so much is given up when so much is left.
const CLOSING_OVERDUE: Duration = Duration::from_millis(250);
/// How long after the end of its budget a run counts as lost that has not reported.
const LOST_MARGIN: Duration = Duration::from_secs(60);

/// A future that is under way, or none.
type UnderWay<T> = Option<BoxFuture<'static, T>>;

/// A claim that has come back.
struct Claimed {
    begun: Instant,
    lanes: Vec<LaneClaim>,
    holds: Vec<Hold>,
    slots: OwnedSemaphorePermit,
    grant: Grant,
    result: Result<Vec<ClaimedEvent>, StoreError>,
}

/// A handler that is running.
struct Started {
    delivery: Arc<Delivery>,
    route: Arc<Route>,
    /// Counts it while it runs.
    _hold: Option<Hold>,
}

/// What happened next.
enum Step {
    Claimed(Claimed),
    Settled(Settled),
    Swept(Result<Swept, StoreError>),
    Ended(Result<(Id, Finished), JoinError>),
    Slot(Option<OwnedSemaphorePermit>),
    Room,
    Batch,
    Watch,
    Stop,
}

/// A bounded pass over what is due.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each tells one independent thing that the next turn of the loop asks"
)]
pub(super) struct Run {
    shared: Arc<Shared>,
    request: RunRequest,
    countdown: Countdown,
    report: RunReport,
    /// Types with live events, as the last sweep saw them.
    types: Vec<String>,
    /// Its part in the batch, and the word that it wants slots.
    share: Share,
    /// What tracing tools see of it.
    span: Option<RunSpan>,
    hungry: Option<Hungry>,
    claiming: UnderWay<Claimed>,
    settling: FuturesUnordered<BoxFuture<'static, Settled>>,
    sweeping: UnderWay<Result<Swept, StoreError>>,
    handlers: JoinSet<Finished>,
    started: HashMap<Id, Started>,
    finished: Vec<Settlement>,
    /// A slot that was waited for.
    slot: Option<OwnedSemaphorePermit>,
    /// A place in the queue for one; giving it up would mean to begin again behind everybody.
    queuing: UnderWay<Option<OwnedSemaphorePermit>>,
    /// Slots are free, but none for lanes that hold as much as these do.
    wants_room: bool,
    /// Its part in the batch is used up, but others may leave it theirs.
    wants_batch: bool,
    wants_sweep: bool,
    /// Whether a sweep of its own has ended: without one a run cannot say that nothing is left.
    has_swept: bool,
    subject_drained: bool,
    stopping: bool,
    failure: Option<StoreError>,
    turn: usize,
    watched_at: Instant,
    /// From when on even a small claim is made, and a small settlement.
    claim_from: Instant,
    settle_from: Instant,
}

impl Run {
    /// A run that has the whole batch. Judges the budget.
    pub(super) fn new(shared: Arc<Shared>, request: RunRequest) -> Result<Self, RunError> {
        let countdown = Countdown::start(request.budget);
        check_budget(&request, &countdown, shortest_timeout(&shared, &request))?;
        let share = Share::whole(request.budget.batch_size);
        let span = RunSpan::begin(&shared, &shared.outbox);
        Ok(Self::part(shared, request, countdown, Uuid::now_v7(), share, span))
    }

    /// The part of a run that one of its outboxes has.
    pub(super) fn part(
        shared: Arc<Shared>,
        request: RunRequest,
        countdown: Countdown,
        run_id: Uuid,
        share: Share,
        span: Option<RunSpan>,
    ) -> Self {
        let now = Instant::now();
        Self {
            hungry: Some(shared.slots.hungry()),
            shared,
            request,
            countdown,
            report: RunReport::begun(run_id),
            types: Vec::new(),
            share,
            span,
            claiming: None,
            settling: FuturesUnordered::new(),
            sweeping: None,
            handlers: JoinSet::new(),
            started: HashMap::new(),
            finished: Vec::new(),
            slot: None,
            queuing: None,
            wants_room: false,
            wants_batch: false,
            wants_sweep: false,
            has_swept: false,
            subject_drained: false,
            stopping: false,
            failure: None,
            turn: fastrand::usize(..1_000),
            watched_at: now,
            claim_from: now,
            settle_from: now,
        }
    }

    /// Keeps the run in the database from now on, so that anybody can ask for it.
    pub(super) async fn announce(&mut self) -> Result<RunReport, RunError> {
        let saved = self.shared.store.save_run(&self.report, self.request.trigger, lost_after(&self.countdown)).await;
        saved.map_err(|source| RunError::Store { source, partial: None })?;
        Ok(self.report.clone())
    }

    /// Does the run and keeps its report. It is to be driven to its end on a task of its own.
    pub(super) async fn drive(self, hung_up: CancellationToken) -> Result<RunReport, RunError> {
        let store = Arc::clone(&self.shared.store);
        self.drive_part(hung_up).await.conclude(&store).await
    }

    /// Does the run; its report is the caller's to keep.
    pub(super) async fn drive_part(mut self, hung_up: CancellationToken) -> Ended {
        self.first_sweep().await;
        loop {
            self.begin_settle();
            self.begin_sweep();
            self.begin_claim();
            self.drop_useless_sweep();
            if !self.is_done() {
                self.share.wake();
            } else if !self.begin_missing_sweep() && self.is_over() {
                break;
            }
            match self.next_step(&hung_up).await {
                Step::Claimed(claimed) => self.note_claimed(claimed),
                Step::Settled(settled) => self.note_settled(settled),
                Step::Swept(swept) => self.note_swept(swept),
                Step::Ended(ended) => self.note_ended(ended),
                Step::Slot(slot) => self.slot = slot,
                Step::Room | Step::Batch => {}
                Step::Watch => self.note_overdue(),
                Step::Stop => self.stopping = true,
            }
        }
        self.finish().await
    }

    /// The sweep that every run begins with, unless another one has just been made. Where sweeps are slow the run claims
    /// beside it, from the lanes as they were last seen.
    async fn first_sweep(&mut self) {
        let may_sweep = self.shared.may_sweep();
        let sweep = sweep(Arc::clone(&self.shared), Duration::ZERO);
        if may_sweep && !self.shared.lanes().sweeps_are_slow() {
            let swept = sweep.await;
            self.note_swept(swept);
            return;
        }
        self.sweeping = may_sweep.then(|| Box::pin(sweep) as BoxFuture<'static, _>);
        let mut lanes = self.shared.lanes();
        lanes.assume_claimable();
        self.types = lanes.iter().map(|(event_type, _)| event_type.to_owned()).collect();
    }

    /// Nothing is under way but a sweep that a run with a full batch has no use for. (What could begin has just begun.)
    fn is_done(&self) -> bool {
        self.claiming.is_none()
            && self.settling.is_empty()
            && (self.sweeping.is_none() || !self.may_begin())
            && self.started.is_empty()
            && self.finished.is_empty()
            && self.queuing.is_none()
            && !self.wants_room
            && !self.wants_batch
    }

    /// Nothing is left to be done, neither here nor in the other outboxes of the run: while they go on, something new may
    /// come here.
    fn is_over(&mut self) -> bool {
        !self.may_claim() || self.countdown.remaining().is_zero() || self.share.rest()
    }

    async fn next_step(&mut self, hung_up: &CancellationToken) -> Step {
        let wake_at = self.wake_at();
        tokio::select! {
            claimed = next(&mut self.claiming) => Step::Claimed(claimed),
            Some(settled) = self.settling.next() => Step::Settled(settled),
            swept = next(&mut self.sweeping) => Step::Swept(swept),
            Some(ended) = self.handlers.join_next_with_id() => Step::Ended(ended),
            slot = next(&mut self.queuing) => Step::Slot(slot),
            () = self.shared.in_flight.freed(), if self.wants_room => Step::Room,
            () = self.share.changed(), if self.wants_batch || self.share.is_resting() => Step::Batch,
            () = self.shared.stop.cancelled(), if !self.stopping => Step::Stop,
            () = hung_up.cancelled(), if !self.stopping => Step::Stop,
            () = tokio::time::sleep_until(wake_at.into()) => Step::Watch,
        }
    }

    /// When to look again although nothing has happened.
    fn wake_at(&self) -> Instant {
        let now = Instant::now();
        let sweep = self.may_claim().then(|| self.shared.lanes().next_sweep().max(now + 5 * CLAIM_LINGER));
        let closing = now + self.countdown.remaining().saturating_sub(CLOSING_OVERDUE);
        let end = now + self.countdown.remaining();
        let ahead = [self.claim_from, self.settle_from, closing, end].into_iter().filter(|at| *at > now);
        ahead.chain(sweep).fold(self.watched_at + WATCH_EVERY, Instant::min)
    }

    /// Why the run ends, judged by what is left.
    fn stop_reason(&self, too_late: bool) -> StopReason {
        if self.failure.is_some() {
            StopReason::Error
        } else if self.stopping {
            StopReason::Shutdown
        } else if self.share.is_full() {
            StopReason::BatchSize
        } else if too_late {
            StopReason::Budget
        } else {
            StopReason::Drained
        }
    }
}

/// Waits for what is under way; for ever when nothing is.
async fn next<T>(under_way: &mut UnderWay<T>) -> T {
    match under_way {
        Some(future) => {
            let output = future.await;
            *under_way = None;
            output
        }
        None => pending().await,
    }
}

/// The shortest timeout of the routes that the run could use, if there are any.
pub(super) fn shortest_timeout(shared: &Shared, request: &RunRequest) -> Option<Duration> {
    let registry = &shared.registry;
    let routes: Vec<&Arc<Route>> = if request.types.is_empty() {
        registry.routes().iter().collect()
    } else {
        request.types.iter().filter_map(|event_type| registry.route_for(event_type)).collect()
    };
    routes.iter().map(|route| route.timeout).min()
}

/// Refuses a budget in which none of the routes that the run could use ever fits.
pub(super) fn check_budget(
    request: &RunRequest,
    countdown: &Countdown,
    shortest: Option<Duration>,
) -> Result<(), RunError> {
    match shortest {
        Some(timeout) if !countdown.fitted_at_start(timeout) => {
            Err(RunError::BudgetTooSmall { smallest_max_runtime: request.budget.needed(timeout) })
        }
        Some(_) | None => Ok(()),
    }
}
