//! What stands in the lanes of an adopted table: lane by lane where an index leads to them, else by one bounded pass.

use async_trait::async_trait;

use super::AdoptedStore;
use crate::store::postgres::rows::timestamp;
use crate::store::postgres::stats::{lane, lanes};
use crate::store::stats::{Counting, Lanes, Limits, collect, of_one_pass};
use crate::store::{LaneStats, MOST_COUNTED, Stats, StoreError};

#[async_trait]
impl Counting for AdoptedStore {
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

impl AdoptedStore {
    /// What stands in the lanes.
    pub(super) async fn count_lanes(&self) -> Result<Stats, StoreError> {
        if self.statements().await?.counts_by_index {
            return collect(self).await;
        }
        let (as_of, lanes) = self
            .read(i64::from(MOST_COUNTED), |statements, limit, connection| {
                Box::pin(async move {
                    let rows = statements.stats_grouped().bind(limit).fetch_all(&mut *connection).await?;
                    let lanes = rows.iter().map(lane).collect::<Result<Vec<_>, _>>()?;
                    let as_of: time::OffsetDateTime = sqlx::query_scalar("SELECT now()")
                        .persistent(!statements.pooled())
                        .fetch_one(connection)
                        .await?;
                    Ok((timestamp(as_of), lanes))
                })
            })
            .await?;
        Ok(of_one_pass(as_of, lanes))
    }
}
