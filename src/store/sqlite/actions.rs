//! The log of what operators did to events.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::error::{from_sqlx, unreadable};
use super::row::{get, instant, lenient_text};
use super::statements::Statements;
use crate::event::EventId;
use crate::store::{Action, ActionKind, Actor, StoreError};

/// ?1 ids as a JSON array, ?2 action, ?3 who, ?4 why or NULL.
pub(super) const NOTE: &str = "-- outbox: note what was done
INSERT INTO {actions} (outbox, event_id, at, action, actor, note)
SELECT {own_outbox}, changed.value, {now}, ?2, ?3, ?4
FROM json_each(?1) AS changed";

/// ?1 id.
pub(super) const READ: &str = "-- outbox: read what was done
SELECT at, action, actor, note
FROM {actions}
WHERE outbox = {own_outbox} AND event_id = ?1
ORDER BY action_no
LIMIT 1000";

/// Writes lines within a transition's own transaction.
pub(super) async fn note(
    statements: &Statements,
    ids: &[EventId],
    kind: ActionKind,
    by: &Actor,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    let query = sqlx::query(statements.action_note.clone())
        .bind(serde_json::json!(ids).to_string())
        .bind(kind.as_str())
        .bind(by.name.clone())
        .bind(by.note.clone());
    query.execute(connection).await.map_err(from_sqlx).map(|_| ())
}

/// A line of the log.
pub(super) fn line(row: &SqliteRow) -> Result<Action, StoreError> {
    Ok(Action {
        at: instant(row, 0)?,
        kind: get::<&str>(row, 1)?.parse().map_err(|_| unreadable("action"))?,
        actor: get(row, 2)?,
        note: lenient_text(row, 3)?,
    })
}

impl SqliteStore {
    pub(super) async fn read_actions(&self, id: &EventId) -> Result<Vec<Action>, StoreError> {
        let query = sqlx::query(self.statements.actions.clone()).bind(id.to_string());
        self.read(move |connection| {
            Box::pin(async move {
                let rows = query.fetch_all(connection).await.map_err(from_sqlx)?;
                rows.iter().map(line).collect()
            })
        })
        .await
    }
}
