//! Events that are already there: whether one was made by the same request.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use crate::event::{Event, NewEvent};
use crate::store::Enqueued;
use crate::store::postgres::rows::event;
use crate::store::postgres::statements::Statements;

/// What an event that was not inserted turns out to be.
pub(super) enum Verdict {
    /// The request was made before.
    Replay(Box<Enqueued>),
    /// The key belongs to another request.
    KeyReused,
    /// The id belongs to another request.
    IdConflict,
    /// What it clashed with is gone.
    Vanished,
}

/// An event that is already there.
pub(super) struct Known {
    event: Event,
    fingerprint: Option<Vec<u8>>,
    payload: Option<String>,
}

impl Known {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        let (fingerprint, payload) = (row.try_get("fingerprint")?, row.try_get("payload")?);
        Ok(Self { event: event(row)?, fingerprint, payload })
    }

    /// Whether this request made it. A plain INSERT leaves no fingerprint; then the contents are compared.
    fn was_made_by(&self, request: &NewEvent) -> bool {
        let fingerprint = self.fingerprint.clone().unwrap_or_else(|| {
            let stored = NewEvent {
                id: None,
                event_type: self.event.event_type.clone(),
                subject: self.event.subject.clone(),
                payload: self.payload.clone().unwrap_or_default(),
                headers: self.event.headers.clone(),
                due: request.due,
                max_attempts: self.event.max_attempts,
                idempotency_key: None,
                trace: None,
            };
            stored.fingerprint()
        });
        fingerprint == request.fingerprint()
    }
}

/// Reads what is there under the ids and keys of these requests.
pub(super) async fn find(
    statements: &Statements,
    requests: impl Iterator<Item = &NewEvent> + Clone,
    connection: &mut PgConnection,
) -> Result<Vec<Known>, sqlx::Error> {
    let keys: Vec<&str> = requests.clone().filter_map(|request| request.idempotency_key.as_deref()).collect();
    let ids: Vec<Uuid> = requests.filter_map(|request| request.id).collect();
    let rows = statements.known().bind(keys).bind(ids).fetch_all(connection).await?;
    rows.iter().map(Known::read).collect()
}

/// Judges a request by what was found; its key counts before its id.
pub(super) fn judge(known: &[Known], request: &NewEvent) -> Verdict {
    let has_key =
        |known: &&Known| request.idempotency_key.is_some() && known.event.idempotency_key == request.idempotency_key;
    let has_id = |known: &&Known| request.id.is_some() && request.id == known.event.id.uuid();
    let by_key = known.iter().find(has_key);
    match by_key.or_else(|| known.iter().find(has_id)) {
        None => Verdict::Vanished,
        Some(known) if known.was_made_by(request) => {
            Verdict::Replay(Box::new(Enqueued { event: known.event.clone(), created: false }))
        }
        Some(_) if by_key.is_some() => Verdict::KeyReused,
        Some(_) => Verdict::IdConflict,
    }
}
