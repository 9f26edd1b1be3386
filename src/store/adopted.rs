//! What adopted tables have in common, whatever the database.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use super::micros;
use crate::event::{Event, EventId, NewEvent, Status};
use crate::timestamp::Timestamp;

/// Characters of an id that is looked for.
const MAX_ID_CHARS: usize = 10_000;

/// What was made of a table's catalogue: filled by the first call that could read it, emptied when the table was altered.
#[derive(Debug)]
pub(in crate::store) struct Resolved<S>(Mutex<Arc<OnceCell<Arc<S>>>>);

impl<S> Default for Resolved<S> {
    fn default() -> Self {
        Self(Mutex::new(Arc::default()))
    }
}

impl<S> Resolved<S> {
    /// What is there, or what `resolve` makes of the catalogue now. One failure is not kept.
    pub(in crate::store) async fn get<E>(&self, resolve: impl Future<Output = Result<Arc<S>, E>>) -> Result<Arc<S>, E> {
        let cell = Arc::clone(&self.cell());
        cell.get_or_try_init(|| resolve).await.cloned()
    }

    /// Makes the next call read the catalogue again.
    pub(in crate::store) fn forget(&self) {
        *self.cell() = Arc::default();
    }

    fn cell(&self) -> MutexGuard<'_, Arc<OnceCell<Arc<S>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id that a caller's text means. An application's ids may be odd; what the database cannot compare at all is none.
pub(in crate::store) fn possible_id(text: &str) -> Option<EventId> {
    let is_fit = text.chars().count() <= MAX_ID_CHARS && !text.contains('\0');
    is_fit.then(|| EventId::from_text(text))
}

/// The event with the end of its present lease, which the table itself does not say.
pub(in crate::store) fn with_lease_end(event: Event, lease: Duration) -> Event {
    let held = event.locked_at.filter(|_| event.status == Status::Processing);
    let lease_until = held.map(|at| Timestamp::from_micros(at.as_micros().saturating_add(micros(lease))));
    Event { lease_until, ..event }
}

/// Whether the event that is there under a request's id is the one that it asks for: without a place for fingerprints it is
/// known by its content.
pub(in crate::store) fn is_replay(there: &Event, new: &NewEvent) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let payload = there.payload.as_deref().unwrap_or_default();
    there.event_type == new.event_type
        && there.subject == new.subject
        && (payload == new.payload || value(payload) == value(&new.payload))
}
