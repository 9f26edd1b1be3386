//! A model of the store, a plain map, walked through random operations beside each database. After every step the two
//! must agree on every event. A failure names its seed; `OUTBOXD_MODEL_SEED` walks that one again.

use std::collections::BTreeMap;

use outboxd::event::Status;
use outboxd::outcome::Change;
use outboxd::store::{ReapLane, RequeueChange, Transition};

use super::*;
use crate::support::database::TestDb;

const WALKS: u64 = 6;
const STEPS: usize = 120;

/// What the model knows of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    status: Status,
    attempts: i32,
    max_attempts: i32,
    requeues: i32,
    claim_no: i64,
    deferred: bool,
    last_error: Option<String>,
    lines: usize,
    /// Not compared: whether it can be claimed, and whether its lease has ended.
    due: bool,
    expired: bool,
}

struct Walk {
    store: Arc<dyn Store>,
    sql: TestDb,
    random: fastrand::Rng,
    events: BTreeMap<Uuid, Known>,
}

impl Walk {
    async fn step(&mut self) {
        match self.random.u8(0..14) {
            0..3 => self.enqueue().await,
            3..6 => self.claim().await,
            6..10 => self.settle().await,
            10 => self.expire_and_reap().await,
            11 => self.make_all_due().await,
            12 => self.requeue().await,
            _ => self.cancel_or_discard().await,
        }
    }

    fn any(&mut self) -> Option<Uuid> {
        let ids: Vec<Uuid> = self.events.keys().copied().collect();
        self.random.choice(ids)
    }

    async fn enqueue(&mut self) {
        let max_attempts = self.random.i32(1..4);
        let id = enqueue_as(&self.store, NewEvent { max_attempts, ..NewEvent::new("a", "1") }).await;
        let known = Known {
            status: Status::Pending,
            attempts: 0,
            max_attempts,
            requeues: 0,
            claim_no: 0,
            deferred: false,
            last_error: None,
            lines: 0,
            due: true,
            expired: false,
        };
        self.events.insert(id, known);
    }

    async fn claim(&mut self) {
        let limit = self.random.u32(1..4);
        let claimed = claim(&self.store, "a", limit).await;
        let claimable = self.events.values().filter(|event| event.status == Status::Pending && event.due).count();
        assert_eq!(claimed.len(), claimable.min(limit as usize));
        for claim in claimed {
            let known = self.events.get_mut(&claim.lease.event_id.uuid().unwrap()).unwrap();
            assert!(known.status == Status::Pending && known.due);
            known.status = Status::Processing;
            known.claim_no += 1;
            known.expired = false;
            assert_eq!(
                (claim.lease.claim_no, claim.attempts, claim.deferred_for.is_some()),
                (known.claim_no, known.attempts, known.deferred)
            );
        }
    }

    async fn settle(&mut self) {
        let Some(id) = self.any() else { return };
        let stale = self.random.u8(0..4) == 0;
        let known = self.events.get_mut(&id).unwrap();
        let lease = Lease { event_id: id.into(), claim_no: known.claim_no - i64::from(stale) };
        let text = format!("e{}", self.random.u8(..));
        let change = match self.random.u8(0..6) {
            0 => Change::Complete,
            1 => Change::Retry { delay: LEASE, after_lease: self.random.bool(), error: text },
            2 => Change::Defer { delay: LEASE, reason: text },
            3 => Change::Skip { reason: text },
            4 => Change::DeadLetter { spends_attempt: self.random.bool(), error: text },
            _ => Change::Release,
        };
        let applies = known.status == Status::Processing && !stale;
        let mut written = settlement(lease, change.clone());
        if change == Change::Release {
            written.attempt = None;
        }
        assert_eq!(self.store.settle(&[written]).await.unwrap().len(), usize::from(applies));
        if applies {
            known.apply(change);
        }
    }

    async fn expire_and_reap(&mut self) {
        let processing: Vec<Uuid> =
            self.events.iter().filter(|(_, known)| known.status == Status::Processing).map(|(id, _)| *id).collect();
        for id in processing {
            if self.random.bool() {
                self.sql.expire_lease(id).await;
                self.events.get_mut(&id).unwrap().expired = true;
            }
        }
        let lane = ReapLane { event_type: "a".to_owned(), after: None };
        let page = self.store.reap(&[lane], 10_000).await.unwrap();
        let mut reaped = 0;
        for known in self.events.values_mut().filter(|known| known.status == Status::Processing && known.expired) {
            known.fail("claim expired");
            known.due = true;
            known.lines += 1;
            reaped += 1;
        }
        assert_eq!(page.reaped.len(), reaped);
        for taken in page.reaped {
            assert_eq!(taken.status, self.events[&taken.event_id.uuid().unwrap()].status);
        }
    }

    async fn make_all_due(&mut self) {
        let waiting: Vec<Uuid> =
            self.events.iter().filter(|(_, known)| known.status == Status::Pending).map(|(id, _)| *id).collect();
        for id in waiting {
            self.sql.make_due(id).await;
            self.events.get_mut(&id).unwrap().due = true;
        }
    }

    async fn requeue(&mut self) {
        let Some(id) = self.any() else { return };
        let later = self.random.bool();
        let change = RequeueChange {
            delay: if later { LEASE } else { Duration::ZERO },
            max_attempts: self.random.bool().then_some(2),
        };
        let known = self.events.get_mut(&id).unwrap();
        let answer = self.store.requeue(&id.into(), &change, &somebody()).await.unwrap();
        assert_eq!(matches!(answer, Transition::Applied(_)), known.status == Status::DeadLetter);
        if known.status == Status::DeadLetter {
            known.status = Status::Pending;
            known.attempts = 0;
            known.max_attempts = change.max_attempts.unwrap_or(known.max_attempts);
            known.requeues += 1;
            known.deferred = false;
            known.due = !later;
        }
    }

    async fn cancel_or_discard(&mut self) {
        let Some(id) = self.any() else { return };
        let known = self.events.get_mut(&id).unwrap();
        let (answer, from) = if self.random.bool() {
            (self.store.cancel(&id.into(), "why", &somebody()).await.unwrap(), Status::Pending)
        } else {
            (self.store.discard(&id.into(), "why", &somebody()).await.unwrap(), Status::DeadLetter)
        };
        assert_eq!(matches!(answer, Transition::Applied(_)), known.status == from);
        if known.status == from {
            known.status = Status::Skipped;
            known.deferred = false;
            known.last_error = Some("why".to_owned());
        }
    }

    /// Compares every event, and what must hold of any event.
    async fn compare(&self) {
        for (id, known) in &self.events {
            let event = event(&self.store, *id).await;
            let found = Known {
                status: event.status,
                attempts: event.attempts,
                max_attempts: event.max_attempts,
                requeues: event.requeues,
                claim_no: event.claim_no,
                deferred: event.deferred_since.is_some(),
                last_error: event.last_error,
                lines: self.store.attempts(&(*id).into()).await.unwrap().len(),
                ..known.clone()
            };
            assert_eq!(&found, known, "{id}");
            assert_eq!(event.processed_at.is_some(), event.status.is_terminal());
            assert_eq!(event.dead_at.is_some(), event.status == Status::DeadLetter);
            assert_eq!(event.locked_at.is_some(), event.status == Status::Processing);
            assert_eq!(event.lease_until.is_some(), event.status == Status::Processing);
        }
    }
}

impl Known {
    fn apply(&mut self, change: Change) {
        self.lines += usize::from(change != Change::Release);
        match change {
            Change::Complete => {
                self.status = Status::Completed;
                self.deferred = false;
            }
            Change::Retry { error, .. } => {
                self.attempts += 1;
                self.wait(error);
                self.deferred = false;
            }
            Change::Defer { reason, .. } => {
                self.wait(reason);
                self.deferred = true;
            }
            Change::Skip { reason } => {
                self.status = Status::Skipped;
                self.last_error = Some(reason);
                self.deferred = false;
            }
            Change::DeadLetter { spends_attempt, error } => {
                self.status = Status::DeadLetter;
                self.attempts += i32::from(spends_attempt);
                self.last_error = Some(error);
                self.deferred = false;
            }
            Change::Release => self.status = Status::Pending,
        }
    }

    fn wait(&mut self, error: String) {
        self.status = Status::Pending;
        self.last_error = Some(error);
        self.due = false;
    }

    fn fail(&mut self, error: &str) {
        self.attempts += 1;
        self.status = if self.attempts >= self.max_attempts { Status::DeadLetter } else { Status::Pending };
        self.last_error = Some(error.to_owned());
        self.deferred = false;
    }
}

async fn walk(sql: TestDb) {
    let given = std::env::var("OUTBOXD_MODEL_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let store = sql.migrated().await;
    for _ in 0..given.map_or(WALKS, |_| 1) {
        let seed = given.unwrap_or_else(|| fastrand::u64(..));
        println!("OUTBOXD_MODEL_SEED={seed}");
        sql.sql("DELETE FROM {events}").await;
        sql.sql("DELETE FROM {attempts_log}").await;
        let random = fastrand::Rng::with_seed(seed);
        let mut walk = Walk { store: Arc::clone(&store), sql: sql.clone(), random, events: BTreeMap::new() };
        for _ in 0..STEPS {
            walk.step().await;
            walk.compare().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_and_the_model_agree_on_every_step() {
    walk(TestDb::empty_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_and_the_model_agree_on_every_step() {
    walk(TestDb::empty_postgres().await).await;
}
