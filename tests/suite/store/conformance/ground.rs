//! The tables on which the conformance suite runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outboxd::event::{Event, EventId, NewEvent, Status};
use outboxd::lease::{ClaimedEvent, Lease};
use outboxd::outcome::Change;
use outboxd::store::description::{Columns, Description, Labels, TableName};
use outboxd::store::table::Table;
use outboxd::store::{Claim, LaneClaim, Store, StoreOptions, connect_adopted};

use super::super::{LEASE, settlement};
use crate::adopted::{drizzle, prisma};
use crate::support::database::TestDb;
use crate::support::pooler::Pooler;

/// A table, its store, and a way past the store.
#[expect(clippy::struct_excessive_bools, reason = "each says one thing that a table has or has not")]
pub struct Ground {
    pub store: Arc<dyn Store>,
    pub sql: TestDb,
    /// Another instance's.
    pub other: Arc<dyn Store>,
    /// The type of its events.
    pub kind: &'static str,
    /// Another type, where there can be several.
    pub other_kind: Option<&'static str>,
    pub has_skipped: bool,
    pub has_subject: bool,
    /// Whether events may bring their ids.
    pub takes_ids: bool,
    /// Whether claims have numbers.
    pub counts_claims: bool,
    /// Attempt log, counts of requeues, idempotency keys, a lease of each claim's own: our own tables.
    pub is_own: bool,
    /// The limit of a new event.
    pub max_attempts: i32,
    _pooler: Option<Pooler>,
}

/// What a described table looks like.
pub(super) struct Shape {
    pub(super) tables: &'static str,
    pub(super) description: Description,
    pub(super) other_kind: Option<&'static str>,
}

fn columns(event_type: Option<&str>, created_at: &str, processed_at: &str) -> Columns {
    Columns {
        id: "id".to_owned(),
        event_type: event_type.map(str::to_owned),
        payload: "payload".to_owned(),
        status: "status".to_owned(),
        attempts: "attempts".to_owned(),
        available_at: "availableAt".to_owned(),
        locked_at: "claimedAt".to_owned(),
        created_at: created_at.to_owned(),
        processed_at: Some(processed_at.to_owned()),
        last_error: Some("lastError".to_owned()),
        max_attempts: None,
        subject: None,
        headers: None,
        claim_no: None,
    }
}

fn labels(completed: &str, skipped: Option<&str>) -> Labels {
    Labels {
        pending: "PENDING".to_owned(),
        processing: "PROCESSING".to_owned(),
        completed: completed.to_owned(),
        dead_letter: "FAILED".to_owned(),
        skipped: skipped.map(str::to_owned),
    }
}

fn description(table: &str, columns: Columns, labels: Labels) -> Description {
    Description {
        name: "adopted".to_owned(),
        table: TableName::parse(table).unwrap(),
        order_by: Some(columns.created_at.clone()),
        columns,
        labels,
        fixed_type: None,
        max_attempts: 3,
        time_zone: "UTC".to_owned(),
        instants: None,
        lease: LEASE,
        processed_at_on: BTreeSet::from([Status::Completed, Status::DeadLetter, Status::Skipped]),
        filter: None,
    }
}

impl Ground {
    pub async fn own_sqlite() -> Self {
        Self::own(TestDb::empty_sqlite().await).await
    }

    pub async fn own_postgres() -> Self {
        Self::own(TestDb::empty_postgres().await).await
    }

    async fn own(sql: TestDb) -> Self {
        Self {
            store: sql.migrated().await,
            other: sql.store().await,
            sql,
            kind: "mail.sent",
            other_kind: Some("other"),
            has_skipped: true,
            has_subject: true,
            takes_ids: true,
            counts_claims: true,
            is_own: true,
            max_attempts: 3,
            _pooler: None,
        }
    }

    pub async fn domain_events() -> Self {
        Self::described(Self::domain_shape(), false).await
    }

    /// The same behind a pooler in transaction mode.
    pub async fn pooled_domain_events() -> Self {
        Self::described(Self::domain_shape(), true).await
    }

    fn domain_shape() -> Shape {
        let columns =
            Columns { subject: Some("correlationId".to_owned()), ..columns(Some("type"), "occurredAt", "processedAt") };
        Shape {
            tables: prisma::TABLES,
            description: description("public.\"DomainEvent\"", columns, labels("DONE", None)),
            other_kind: Some("other"),
        }
    }

    pub async fn notifications() -> Self {
        let columns = columns(Some("kind"), "createdAt", "deliveredAt");
        let labels = labels("DELIVERED", Some("SKIPPED"));
        let description = description("\"NotificationDelivery\"", columns, labels);
        Self::described(Shape { tables: prisma::TABLES, description, other_kind: Some("other") }, false).await
    }

    pub async fn webhooks() -> Self {
        let columns = columns(None, "createdAt", "deliveredAt");
        let description = description("\"WebhookDelivery\"", columns, labels("DELIVERED", None));
        let description = Description { fixed_type: Some("mail.sent".to_owned()), ..description };
        Self::described(Shape { tables: prisma::TABLES, description, other_kind: None }, false).await
    }

    pub async fn outbox_event() -> Self {
        let own = |name: &str| name.to_owned();
        let columns = Columns {
            id: own("id"),
            event_type: Some(own("event_type")),
            payload: own("payload"),
            status: own("status"),
            attempts: own("attempts"),
            available_at: own("available_at"),
            locked_at: own("locked_at"),
            created_at: own("created_at"),
            processed_at: Some(own("processed_at")),
            last_error: Some(own("last_error")),
            max_attempts: Some(own("max_attempts")),
            subject: None,
            headers: None,
            claim_no: None,
        };
        let labels = Labels {
            pending: own("pending"),
            processing: own("processing"),
            completed: own("completed"),
            dead_letter: own("dead_letter"),
            skipped: None,
        };
        // Ordered by due time, as when nothing is said.
        let description = Description { order_by: None, ..description("outbox_event", columns, labels) };
        Self::described(Shape { tables: drizzle::TABLES, description, other_kind: Some("other") }, false).await
    }

    async fn described(Shape { tables, description, other_kind }: Shape, is_pooled: bool) -> Self {
        let sql = TestDb::empty_postgres().await;
        // Neither shape's instants have a zone.
        let now = "(now() AT TIME ZONE 'UTC')";
        Self::standing_on(sql, now, Shape { tables, description, other_kind }, is_pooled).await
    }

    /// The shape on this empty database, whose present instant is written so.
    pub(super) async fn standing_on(sql: TestDb, now: &str, shape: Shape, is_pooled: bool) -> Self {
        let Shape { tables, description, other_kind } = shape;
        let home = sql.migrated().await;
        sql.sql(tables).await;
        let pooler = is_pooled.then(|| Pooler::start(&sql.options.url));
        let options = pooler.as_ref().map_or_else(
            || sql.options.clone(),
            |pooler| StoreOptions { pooler: true, ..StoreOptions::new(pooler.url()) },
        );
        let connect = || connect_adopted(&options, description.clone(), Arc::clone(&home));
        let (store, other) = (connect().await.unwrap(), connect().await.unwrap());
        let quoted = |name: &str| format!("\"{name}\"");
        let mut names = Table::bare()
            .with("events", description.table.to_string())
            .with("now", now)
            .with("id", quoted(&description.columns.id))
            .with("status", quoted(&description.columns.status))
            .with("attempts", quoted(&description.columns.attempts))
            .with("available_at", quoted(&description.columns.available_at))
            .with("locked_at", quoted(&description.columns.locked_at))
            .with("created_at", quoted(&description.columns.created_at))
            .with("processed_at", quoted(description.columns.processed_at.as_deref().unwrap()))
            .with("last_error", quoted(description.columns.last_error.as_deref().unwrap()));
        for status in [Status::Pending, Status::Processing, Status::Completed, Status::DeadLetter] {
            names = names.with(status.as_str(), format!("'{}'", description.labels.of(status).unwrap()));
        }
        Self {
            store,
            other,
            sql: sql.naming(names),
            kind: "mail.sent",
            other_kind,
            has_skipped: description.labels.skipped.is_some(),
            has_subject: description.columns.subject.is_some(),
            takes_ids: true,
            counts_claims: description.columns.claim_no.is_some(),
            is_own: false,
            max_attempts: 3,
            _pooler: pooler,
        }
    }

    /// Enqueues an event that is due at once.
    pub async fn enqueue(&self) -> EventId {
        self.enqueue_as(NewEvent { max_attempts: self.max_attempts, ..NewEvent::new(self.kind, r#"{"n": 1}"#) }).await
    }

    pub async fn enqueue_as(&self, event: NewEvent) -> EventId {
        self.store.enqueue(&[event]).await.unwrap()[0].event.id.clone()
    }

    pub fn claim_of(&self, limit: u32) -> Claim {
        let lane = LaneClaim { event_type: self.kind.to_owned(), limit, from: None, lease: LEASE };
        Claim { lanes: vec![lane], subject: None }
    }

    pub async fn claim(&self, limit: u32) -> Vec<ClaimedEvent> {
        self.store.claim(&self.claim_of(limit)).await.unwrap()
    }

    /// Enqueues an event and claims it.
    pub async fn claimed(&self) -> ClaimedEvent {
        let id = self.enqueue().await;
        self.claim_by_id(&id).await.unwrap()
    }

    pub async fn claim_by_id(&self, id: &EventId) -> Option<ClaimedEvent> {
        self.store.claim_by_id(id, LEASE).await.unwrap()
    }

    pub async fn event(&self, id: &EventId) -> Event {
        self.store.event(id, false).await.unwrap().unwrap()
    }

    /// Whether the settlement was applied.
    pub async fn settle(&self, lease: &Lease, change: Change) -> bool {
        let applied = self.store.settle(&[settlement(lease.clone(), change)]).await.unwrap();
        assert!(applied.is_empty() || applied == std::slice::from_ref(lease));
        !applied.is_empty()
    }

    /// A dead letter.
    pub async fn dead_letter(&self) -> EventId {
        let claimed = self.claimed().await;
        assert!(self.settle(&claimed.lease, super::bury()).await);
        claimed.lease.event_id
    }

    /// Ends the lease a second ago.
    pub async fn expire(&self, id: &EventId) {
        let sql = if self.is_own {
            format!("UPDATE {{events}} SET {{lease_until}} = {} WHERE {{id}} = '{id}'", self.ago(1))
        } else {
            let claimed_at = self.ago(LEASE.as_secs() + 1);
            format!("UPDATE {{events}} SET {{locked_at}} = {claimed_at} WHERE {{id}} = '{id}'")
        };
        assert_eq!(self.sql.sql(&sql).await, 1);
    }

    pub fn ago(&self, seconds: u64) -> String {
        self.sql.ago(Duration::from_secs(seconds))
    }
}
