-- outbox: in flight by a key of the payload in an adopted table
-- $1 types (all when empty), $2 key, $3 value.
SELECT {id_text} AS id
FROM {events} AS e
WHERE e.{status} IN ({pending}, {processing})
  AND (cardinality($1::text[]) = 0 OR {event_type} = ANY ($1::text[])) AND {filter}
  AND {payload_value} = $3
LIMIT 10
