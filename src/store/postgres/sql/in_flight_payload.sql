-- outbox: in flight by a key of the payload
-- $1 types (all when empty), $2 key, $3 value.
-- Exact, so it reads the live events of the types until ten match; payloads above the limit match nothing.
-- `->>` raises on escapes that no text can hold, so payloads with a \u go through a function that catches it.
SELECT e.{id}
FROM {events} AS e
WHERE e.{processed_at} IS NULL
  AND (cardinality($1::text[]) = 0 OR e.{event_type} = ANY ($1::text[]))
  AND {readable_payload} IS NOT NULL
  AND CASE WHEN position('\u' IN e.{payload}::text) = 0 THEN e.{payload} ->> $2
           ELSE outbox.payload_text(e.{payload}, $2) END = $3
LIMIT 10
