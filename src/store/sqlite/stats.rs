//! What stands in the lanes, and what became of attempts minute by minute.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::error::{from_sqlx, unreadable};
use super::row::{get, instant};
use crate::store::stats::{Counting, Lanes, Limits};
use crate::store::{LaneStats, Minute, MinuteCounts, PoolFigures, StoreError};

/// ?1 only types after this one, ?2 lanes at most. Two skip scans: over the live index and over that of the dead letters.
pub(super) const LANES: &str = "-- outbox: lanes to count
WITH RECURSIVE live(event_type) AS (
    SELECT (
        SELECT e.{event_type}
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} > ?1
        ORDER BY e.{event_type}
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT e.{event_type}
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} > live.event_type
        ORDER BY e.{event_type}
        LIMIT 1
    )
    FROM live
    WHERE live.event_type IS NOT NULL
    LIMIT ?2
),
dead(event_type) AS (
    SELECT (
        SELECT e.{event_type}
        FROM {events} AS e INDEXED BY outbox_event_dead
        WHERE e.{dead_at} IS NOT NULL AND e.{event_type} > ?1
        ORDER BY e.{event_type}
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT e.{event_type}
        FROM {events} AS e INDEXED BY outbox_event_dead
        WHERE e.{dead_at} IS NOT NULL AND e.{event_type} > dead.event_type
        ORDER BY e.{event_type}
        LIMIT 1
    )
    FROM dead
    WHERE dead.event_type IS NOT NULL
    LIMIT ?2
)
SELECT {now}, (
    SELECT json_group_array(event_type)
    FROM (
        SELECT event_type FROM live WHERE event_type IS NOT NULL
        UNION
        SELECT event_type FROM dead WHERE event_type IS NOT NULL
        ORDER BY 1
        LIMIT ?2
    )
)";

/// ?1 type, ?2 rows to look at for due and processing events, ?3 for scheduled ones, ?4 for dead letters.
pub(super) const COUNT: &str = "-- outbox: count a lane
SELECT
    due.pending,
    due.seen - due.pending,
    (
        SELECT COUNT(*)
        FROM (
            SELECT 1
            FROM {events} AS e INDEXED BY outbox_event_live
            WHERE e.{processed_at} IS NULL AND e.{event_type} = ?1 AND e.{target} = '' AND e.{available_at} > {now}
            LIMIT ?3
        )
    ),
    (
        SELECT COUNT(*)
        FROM (
            SELECT 1
            FROM {events} AS e INDEXED BY outbox_event_dead
            WHERE e.{dead_at} IS NOT NULL AND e.{event_type} = ?1
            LIMIT ?4
        )
    ),
    (
        SELECT {now} - e.{available_at}
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} = ?1 AND e.{target} = '' AND e.{available_at} <= {now}
            AND e.{status} = {pending}
        ORDER BY e.{available_at}, e.{id}
        LIMIT 1
    )
FROM (
    SELECT COUNT(*) AS seen, COALESCE(SUM(is_pending), 0) AS pending
    FROM (
        SELECT e.{status} = {pending} AS is_pending
        FROM {events} AS e INDEXED BY outbox_event_live
        WHERE e.{processed_at} IS NULL AND e.{event_type} = ?1 AND e.{target} = '' AND e.{available_at} <= {now}
        ORDER BY e.{available_at}, e.{id}
        LIMIT ?2
    )
) AS due";

/// ?1 outbox, then what has ended in the order of the columns.
pub(super) const ADD_MINUTE: &str = "-- outbox: add to the present minute
INSERT INTO {minutes} (outbox, minute, completed, retried, deferred, skipped, dead_lettered)
VALUES (?1, {now} / 60000000 * 60000000, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (outbox, minute) DO UPDATE
SET completed = completed + excluded.completed,
    retried = retried + excluded.retried,
    deferred = deferred + excluded.deferred,
    skipped = skipped + excluded.skipped,
    dead_lettered = dead_lettered + excluded.dead_lettered";

/// ?1 outbox.
pub(super) const FORGET_MINUTES: &str = "-- outbox: forget old minutes
DELETE FROM {minutes} WHERE outbox = ?1 AND minute < {now} - 172800000000";

/// ?1 outbox, ?2 minutes back from now.
pub(super) const MINUTES: &str = "-- outbox: minutes
SELECT minute, completed, retried, deferred, skipped, dead_lettered
FROM {minutes}
WHERE outbox = ?1 AND minute > {now} - ?2 * 60000000
ORDER BY minute";

#[async_trait]
impl Counting for SqliteStore {
    async fn lanes(&self, after: &str, limit: usize) -> Result<Lanes, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let query = sqlx::query(self.statements.stats_lanes.clone()).bind(after.to_owned()).bind(limit);
        self.read(move |connection| {
            Box::pin(async move {
                let row = query.fetch_one(connection).await.map_err(from_sqlx)?;
                let types = serde_json::from_str(get(&row, 1)?).map_err(|_| unreadable("type"))?;
                Ok(Lanes { as_of: instant(&row, 0)?, types })
            })
        })
        .await
    }

    async fn count(&self, types: &[String], limits: Limits) -> Result<Vec<LaneStats>, StoreError> {
        let (statement, types) = (self.statements.stats_count.clone(), types.to_vec());
        self.read(move |connection| {
            Box::pin(async move {
                let mut lanes = Vec::with_capacity(types.len());
                for event_type in types {
                    let query = sqlx::query(statement.clone()).bind(&event_type).bind(limits.due);
                    let query = query.bind(limits.scheduled).bind(limits.dead_letter);
                    let row = query.fetch_one(&mut *connection).await.map_err(from_sqlx)?;
                    lanes.push(lane(event_type, &row)?);
                }
                Ok(lanes)
            })
        })
        .await
    }
}

fn lane(event_type: String, row: &SqliteRow) -> Result<LaneStats, StoreError> {
    let count = |at: usize| get::<i64>(row, at).map(|count| u64::try_from(count).unwrap_or(0));
    Ok(LaneStats {
        event_type,
        due: count(0)?,
        processing: count(1)?,
        scheduled: count(2)?,
        dead_letter: count(3)?,
        oldest_due_micros: get::<Option<i64>>(row, 4)?.map(|age| age.max(0)),
        capped: false,
    })
}

impl SqliteStore {
    pub(super) async fn write_minute(&self, outbox: &str, counts: MinuteCounts) -> Result<(), StoreError> {
        let mut add = sqlx::query(self.statements.minute_add.clone()).bind(outbox.to_owned());
        for number in counts.numbers() {
            add = add.bind(number);
        }
        let forget = sqlx::query(self.statements.minutes_forget.clone()).bind(outbox.to_owned());
        self.write(move |connection| {
            Box::pin(async move {
                add.execute(&mut *connection).await.map_err(from_sqlx)?;
                forget.execute(connection).await.map_err(from_sqlx)?;
                Ok(())
            })
        })
        .await
    }

    pub(super) async fn read_minutes(&self, outbox: &str, count: u16) -> Result<Vec<Minute>, StoreError> {
        let query = sqlx::query(self.statements.minutes.clone()).bind(outbox.to_owned()).bind(count);
        self.read(move |connection| {
            Box::pin(async move { query.fetch_all(connection).await.map_err(from_sqlx)?.iter().map(minute).collect() })
        })
        .await
    }

    /// The readers; there is one writer beside them.
    pub(super) fn pool_figures(&self) -> PoolFigures {
        let idle = u32::try_from(self.reader.num_idle()).unwrap_or(u32::MAX);
        let max = self.reader.options().get_max_connections();
        PoolFigures { in_use: self.reader.size().saturating_sub(idle), idle, max }
    }
}

fn minute(row: &SqliteRow) -> Result<Minute, StoreError> {
    let mut numbers = [0; 5];
    for (place, number) in numbers.iter_mut().enumerate() {
        *number = get(row, place + 1)?;
    }
    Ok(Minute { minute: instant(row, 0)?, counts: MinuteCounts::from_numbers(numbers) })
}
