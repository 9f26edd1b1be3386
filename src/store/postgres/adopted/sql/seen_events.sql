-- $1 statuses and $2 types (all when empty), $3 subject, $4 and $5 instants between which it was created, $6 and $7 the place
-- behind which to go on, each or NULL; $8 events at most, $9 rows to look at. In the order of `place`; the last row says
-- where looking has stopped, if there may be more.
WITH seen AS MATERIALIZED (
    SELECT walk.*, row_number() OVER () AS place
    FROM (
        SELECT {id_text} AS id, {created_instant} AS created_at, {status_word} AS status, {event_type} AS event_type,
               {subject} AS subject, ({filter}) AS is_ours
        FROM {events} AS e
        WHERE {behind}
        ORDER BY {order}
        LIMIT $9) AS walk
),
matching AS (
    SELECT seen.id, seen.created_at, seen.place
    FROM seen
    WHERE seen.is_ours
      AND (cardinality($1::text[]) = 0 OR seen.status = ANY ($1::text[]))
      AND (cardinality($2::text[]) = 0 OR seen.event_type = ANY ($2::text[]))
      AND ($3::text IS NULL OR seen.subject = $3)
      AND ($4::timestamptz IS NULL OR seen.created_at > $4)
      AND ($5::timestamptz IS NULL OR seen.created_at < $5)
    ORDER BY seen.place
    LIMIT $8
)
SELECT matching.id, matching.created_at, matching.place, true AS matches
FROM matching
UNION ALL
SELECT seen.id, seen.created_at, seen.place, false
FROM seen
WHERE seen.place = $9
