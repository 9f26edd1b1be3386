-- outbox: find dead letters of an adopted table
-- $1 types (all when empty), $2 subject, $3 text of the error, $4 and $5 instants between which they died, $6 the id behind
-- which to go on, each or NULL; $7 dead letters at most, $8 to look at. In the order of the ids, which an index has; the last
-- row says where looking has stopped, if there may be more.
WITH seen AS MATERIALIZED (
    SELECT e.{id} AS place, {id_text} AS id, {event_type} AS event_type, {subject} AS subject, {last_error} AS last_error,
           {dead_at} AS dead_at, ({filter}) AS is_ours
    FROM {events} AS e
    WHERE e.{status} = {dead_letter} AND ($6::text IS NULL OR e.{id} > $6::text::{id_type})
    ORDER BY e.{id}
    LIMIT $8
),
matching AS (
    SELECT seen.id
    FROM seen
    WHERE seen.is_ours
      AND (cardinality($1::text[]) = 0 OR seen.event_type = ANY ($1::text[]))
      AND ($2::text IS NULL OR seen.subject = $2)
      AND ($3::text IS NULL OR position($3 IN seen.last_error) > 0)
      AND ($4::timestamptz IS NULL OR seen.dead_at > $4)
      AND ($5::timestamptz IS NULL OR seen.dead_at < $5)
    ORDER BY seen.place
    LIMIT $7
)
SELECT matching.id, true AS matches
FROM matching
UNION ALL
SELECT stop.id, false
FROM (SELECT seen.id FROM seen ORDER BY seen.place DESC LIMIT 1) AS stop
WHERE (SELECT count(*) FROM seen) = $8
