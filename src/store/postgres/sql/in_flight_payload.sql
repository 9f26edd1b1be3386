-- outbox: in flight by a key of the payload
-- $1 types (all when empty), $2 key, $3 value.
-- Exact, so it reads the live events of the types until ten match; payloads above the limit match nothing. Two branches, of
-- which one runs: a plan that is made once for both would read every lane.
-- `->>` raises on escapes that no text can hold, so payloads with a \u go through a function that catches it.
SELECT live.id
FROM (
    SELECT e.{id} AS id, {readable_payload} AS readable, e.{payload} AS payload
    FROM {events} AS e
    WHERE cardinality($1::text[]) > 0 AND e.{processed_at} IS NULL AND e.{event_type} = ANY ($1::text[])
    UNION ALL
    SELECT e.{id}, {readable_payload}, e.{payload}
    FROM {events} AS e
    WHERE cardinality($1::text[]) = 0 AND e.{processed_at} IS NULL) AS live
WHERE live.readable IS NOT NULL
  AND CASE WHEN position('\u' IN live.payload::text) = 0 THEN live.payload ->> $2
           ELSE outbox.payload_text(live.payload, $2) END = $3
LIMIT 10
