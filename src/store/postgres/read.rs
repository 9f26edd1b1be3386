//! Reading: one event, its logs, what is in flight.

use sqlx::Row;
use uuid::Uuid;

use super::call::Caller;
use super::rows::{action, attempt, event_with_payload};
use crate::event::{Event, EventId};
use crate::lease::ClaimKey;
use crate::store::{Action, Attempt, InFlightKey, StoreError};

pub(super) async fn claim_key(caller: &Caller) -> Result<ClaimKey, StoreError> {
    caller
        .read((), |statements, (), connection| {
            Box::pin(async move {
                let row = statements.claim_key().fetch_one(connection).await?;
                Ok(ClaimKey::new(row.try_get("value")?))
            })
        })
        .await
}

pub(super) async fn one(caller: &Caller, id: Uuid, with_payload: bool) -> Result<Option<Event>, StoreError> {
    caller
        .read((id, with_payload), |statements, (id, with_payload), connection| {
            Box::pin(async move {
                let query = statements.event().bind(id).bind(with_payload);
                query.fetch_optional(connection).await?.as_ref().map(event_with_payload).transpose()
            })
        })
        .await
}

pub(super) async fn attempts(caller: &Caller, id: Uuid) -> Result<Vec<Attempt>, StoreError> {
    caller
        .read(id, |statements, id, connection| {
            Box::pin(async move {
                let query = statements.attempts().bind(id);
                query.fetch_all(connection).await?.iter().map(attempt).collect()
            })
        })
        .await
}

pub(super) async fn actions(caller: &Caller, id: Uuid) -> Result<Vec<Action>, StoreError> {
    caller
        .read(id, |statements, id, connection| {
            Box::pin(async move {
                let query = statements.actions().bind(id);
                query.fetch_all(connection).await?.iter().map(action).collect()
            })
        })
        .await
}

pub(super) async fn in_flight(
    caller: &Caller,
    types: &[String],
    key: &InFlightKey,
) -> Result<Vec<EventId>, StoreError> {
    caller
        .read((types.to_vec(), key.clone()), |statements, (types, key), connection| {
            Box::pin(async move {
                let query = match key {
                    InFlightKey::Subject(subject) => statements.in_flight_subject().bind(types).bind(subject),
                    InFlightKey::Payload { key, value } => {
                        statements.in_flight_payload().bind(types).bind(key).bind(value)
                    }
                };
                query.fetch_all(connection).await?.iter().map(|row| row.try_get(0).map(EventId::Uuid)).collect()
            })
        })
        .await
}
