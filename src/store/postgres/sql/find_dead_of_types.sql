-- outbox: find dead letters of some types
-- $1 to $6 as in `find_dead`, $7 rows to look at of each type, $8 types, each named once.
WITH seen AS MATERIALIZED (
    SELECT lane.event_type, front.*
    FROM unnest($8::text[]) AS lane (event_type)
    CROSS JOIN LATERAL (
        SELECT e.{id} AS id, e.{dead_at} AS dead_at, e.{subject} AS subject, e.{last_error} AS last_error
        FROM {events} AS e
        WHERE e.{dead_at} IS NOT NULL AND e.{event_type} = lane.event_type
          AND (e.{dead_at}, e.{id}) < ($3, $4)
        ORDER BY e.{dead_at} DESC, e.{id} DESC
        LIMIT $7) AS front
),
-- Behind the place where one type's rows stop, others of that type may stand before those of the other types.
stop AS MATERIALIZED (
    SELECT last.id, last.dead_at
    FROM (
        SELECT DISTINCT ON (seen.event_type)
               seen.id, seen.dead_at, count(*) OVER (PARTITION BY seen.event_type) AS looked_at
        FROM seen
        ORDER BY seen.event_type, seen.dead_at, seen.id) AS last
    WHERE last.looked_at = $7
    ORDER BY last.dead_at DESC, last.id DESC
    LIMIT 1
),
matching AS (
    SELECT seen.id, seen.dead_at
    FROM seen
    WHERE seen.dead_at >= $5
      AND ($1::text IS NULL OR seen.subject = $1)
      AND ($2::text IS NULL OR position($2 IN seen.last_error) > 0)
      AND NOT EXISTS (SELECT FROM stop WHERE (seen.dead_at, seen.id) < (stop.dead_at, stop.id))
    ORDER BY seen.dead_at DESC, seen.id DESC
    LIMIT $6
)
SELECT matching.id, matching.dead_at, true AS matches
FROM matching
UNION ALL
SELECT stop.id, stop.dead_at, false
FROM stop
