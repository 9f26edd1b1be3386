-- outbox: list dead letters
-- $1 types (all when empty), $2 subject or NULL, $3 text of the error or NULL, $4 and $5 the place behind which to go on,
-- $6 dead letters at most, $7 rows to look at, $8 whether payloads are wanted.
-- Filters have no index of their own: a page looks at a bounded number of rows and says where it stopped.
WITH seen AS MATERIALIZED (
    SELECT e.*
    FROM {events} AS e
    WHERE e.{dead_at} IS NOT NULL AND (e.{dead_at}, e.{id}) < ($4, $5)
    ORDER BY e.{dead_at} DESC, e.{id} DESC
    LIMIT $7
),
matching AS (
    SELECT e.*
    FROM seen AS e
    WHERE (cardinality($1::text[]) = 0 OR e.{event_type} = ANY ($1::text[]))
      AND ($2::text IS NULL OR e.{subject} = $2)
      AND ($3::text IS NULL OR position($3 IN e.{last_error}) > 0)
    ORDER BY e.{dead_at} DESC, e.{id} DESC
    LIMIT $6
),
place AS (
    SELECT (SELECT count(*) FROM seen) AS looked_at,
           (SELECT count(*) FROM matching) AS found,
           (SELECT e.{dead_at} FROM seen AS e ORDER BY e.{dead_at}, e.{id} LIMIT 1) AS last_at,
           (SELECT e.{id} FROM seen AS e ORDER BY e.{dead_at}, e.{id} LIMIT 1) AS last_id
)
SELECT {event_columns},
       CASE WHEN $8 THEN {readable_payload} END AS payload,
       place.looked_at, place.last_at, place.last_id
FROM place
LEFT JOIN matching AS e ON true
ORDER BY e.{dead_at} DESC, e.{id} DESC
