//! What stands in the lanes, and what became of attempts minute by minute.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::{PgPool, PgRow};
use time::OffsetDateTime;

use super::call::Caller;
use super::rows::timestamp;
use crate::store::stats::{Counting, Lanes, Limits};
use crate::store::{LaneStats, Minute, MinuteCounts, PoolFigures, StoreError};

#[async_trait]
impl Counting for Caller {
    async fn lanes(&self, after: &str, limit: usize) -> Result<Lanes, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read((after.to_owned(), limit), |statements, (after, limit), connection| {
            Box::pin(
                async move { lanes(&statements.stats_lanes().bind(after).bind(limit).fetch_one(connection).await?) },
            )
        })
        .await
    }

    async fn count(&self, types: &[String], limits: Limits) -> Result<Vec<LaneStats>, StoreError> {
        self.read((types.to_vec(), limits), |statements, (types, limits), connection| {
            Box::pin(async move {
                let query = statements.stats_count().bind(types).bind(i64::from(limits.due));
                let query = query.bind(i64::from(limits.scheduled)).bind(i64::from(limits.dead_letter));
                query.fetch_all(connection).await?.iter().map(lane).collect()
            })
        })
        .await
    }
}

/// Reads the names of lanes, and when they were found.
pub(super) fn lanes(row: &PgRow) -> Result<Lanes, sqlx::Error> {
    Ok(Lanes { as_of: timestamp(row.try_get::<OffsetDateTime, _>("as_of")?), types: row.try_get("types")? })
}

/// Reads the counts of one lane.
pub(super) fn lane(row: &PgRow) -> Result<LaneStats, sqlx::Error> {
    let count = |column: &str| row.try_get::<i64, _>(column).map(|count| u64::try_from(count).unwrap_or(0));
    let oldest: Option<i64> = row.try_get("oldest_due_micros")?;
    Ok(LaneStats {
        event_type: row.try_get("event_type")?,
        due: count("due")?,
        scheduled: count("scheduled")?,
        processing: count("processing")?,
        dead_letter: count("dead_letter")?,
        oldest_due_micros: oldest.map(|age| age.max(0)),
        capped: false,
    })
}

pub(super) async fn add_minute(caller: &Caller, outbox: &str, counts: MinuteCounts) -> Result<(), StoreError> {
    caller
        .call((outbox.to_owned(), counts), |statements, (outbox, counts), connection| {
            Box::pin(async move {
                let mut add = statements.add_minute().bind(outbox);
                for number in counts.numbers() {
                    add = add.bind(number);
                }
                add.execute(connection).await.map(|_| ())
            })
        })
        .await
}

pub(super) async fn minutes(caller: &Caller, outbox: &str, count: u16) -> Result<Vec<Minute>, StoreError> {
    caller
        .read((outbox.to_owned(), i32::from(count)), |statements, (outbox, count), connection| {
            Box::pin(async move {
                let rows = statements.minutes().bind(outbox).bind(count).fetch_all(connection).await?;
                rows.iter().map(minute).collect()
            })
        })
        .await
}

fn minute(row: &PgRow) -> Result<Minute, sqlx::Error> {
    let mut numbers = [0; 5];
    for (place, number) in numbers.iter_mut().enumerate() {
        *number = row.try_get(place + 1)?;
    }
    let minute = timestamp(row.try_get::<OffsetDateTime, _>(0)?);
    Ok(Minute { minute, counts: MinuteCounts::from_numbers(numbers) })
}

/// How a pool is used at the moment.
pub(super) fn figures(pool: &PgPool) -> PoolFigures {
    let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
    PoolFigures { in_use: pool.size().saturating_sub(idle), idle, max: pool.options().get_max_connections() }
}
