//! What stands in the lanes of an adopted table, by one bounded pass.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::AdoptedStore;
use super::rows::{instant, text};
use crate::store::StoreError;
use crate::store::stats::of_one_pass;
use crate::store::{LaneStats, MOST_COUNTED, Stats};
use crate::timestamp::Timestamp;

impl AdoptedStore {
    /// What stands in the lanes.
    pub(super) async fn count_lanes(&self) -> Result<Stats, StoreError> {
        let (as_of, lanes) = self
            .read(|statements, connection| {
                Box::pin(async move {
                    let row = statements.present().fetch_one(&mut *connection).await?;
                    let as_of = instant(&row, 0)?.unwrap_or(Timestamp::from_micros(0));
                    let rows = statements.stats().bind(MOST_COUNTED).fetch_all(connection).await?;
                    Ok((as_of, rows.iter().map(lane).collect::<Result<Vec<_>, sqlx::Error>>()?))
                })
            })
            .await?;
        Ok(of_one_pass(as_of, lanes))
    }
}

fn lane(row: &SqliteRow) -> Result<LaneStats, sqlx::Error> {
    let count = |at: usize| row.try_get::<i64, _>(at).map(|count| u64::try_from(count).unwrap_or(0));
    Ok(LaneStats {
        event_type: text(row, 0)?.unwrap_or_default(),
        due: count(1)?,
        scheduled: count(2)?,
        processing: count(3)?,
        dead_letter: count(4)?,
        oldest_due_micros: row.try_get::<Option<i64>, _>(5)?.map(|age| age.max(0)),
        capped: false,
    })
}
