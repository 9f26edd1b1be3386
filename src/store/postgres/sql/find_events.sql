-- outbox: list events, newest first
-- $1 statuses and $2 types (all when empty), $3 subject, $4 and $5 instants between which it was created, each or NULL,
-- $6 the place behind which to go on or NULL, $7 whether the ids rise, $8 events at most, $9 rows to look at.
WITH seen AS MATERIALIZED (
    SELECT {listed_columns}
    FROM {events} AS e
    WHERE e.{id} <= coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') AND e.{id} IS DISTINCT FROM $6::uuid
    ORDER BY e.{id} DESC
    LIMIT $9
),
{found_events}
