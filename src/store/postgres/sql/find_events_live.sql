-- outbox: list live events, where there are few
-- $1 statuses and $2 types (all when empty), $3 subject, $4 and $5 instants between which it was created, each or NULL,
-- $6 the place behind which to go on or NULL, $7 whether the ids rise, $8 events at most, $9 rows to look at.
WITH seen AS MATERIALIZED (
    SELECT {listed_columns}
    FROM {events} AS e
    WHERE e.{processed_at} IS NULL
    -- The index's own order, so that it is read along and no further than needed.
    ORDER BY e.{event_type}, e.{target}, e.{available_at}, e.{id}
    LIMIT $9
),
{found_events}
