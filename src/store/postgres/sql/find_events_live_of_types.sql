-- outbox: list live events of some types, where there are few
-- $1 statuses and $2 types (all when empty), $3 subject, $4 and $5 instants between which it was created, each or NULL,
-- $6 the place behind which to go on or NULL, $7 whether the ids rise, $8 events at most, $9 rows to look at.
WITH seen AS MATERIALIZED (
    SELECT front.*
    FROM unnest($2::text[]) AS lane (event_type)
    CROSS JOIN LATERAL (
        SELECT {listed_columns}
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type
        ORDER BY e.{target}, e.{available_at}, e.{id}
        LIMIT $9) AS front
    LIMIT $9
),
{found_events}
