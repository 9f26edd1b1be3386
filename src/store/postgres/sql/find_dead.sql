-- outbox: find dead letters
-- $1 subject or NULL, $2 text of the error or NULL, $3 and $4 the place behind which to go on, $5 the earliest instant,
-- $6 dead letters at most, $7 rows to look at. The last row says where looking has stopped, if there may be more.
WITH seen AS MATERIALIZED (
    SELECT e.{id} AS id, e.{dead_at} AS dead_at, e.{subject} AS subject, e.{last_error} AS last_error
    FROM {events} AS e
    WHERE e.{dead_at} IS NOT NULL AND (e.{dead_at}, e.{id}) < ($3, $4)
    ORDER BY e.{dead_at} DESC, e.{id} DESC
    LIMIT $7
),
matching AS (
    SELECT seen.id, seen.dead_at
    FROM seen
    WHERE seen.dead_at >= $5
      AND ($1::text IS NULL OR seen.subject = $1)
      AND ($2::text IS NULL OR position($2 IN seen.last_error) > 0)
    ORDER BY seen.dead_at DESC, seen.id DESC
    LIMIT $6
)
SELECT matching.id, matching.dead_at, true AS matches
FROM matching
UNION ALL
SELECT stop.id, stop.dead_at, false
FROM (SELECT seen.id, seen.dead_at FROM seen ORDER BY seen.dead_at, seen.id LIMIT 1) AS stop
WHERE (SELECT count(*) FROM seen) = $7
