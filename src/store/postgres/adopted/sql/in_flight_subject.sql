-- outbox: in flight by subject in an adopted table
-- $1 types (all when empty), $2 subject.
SELECT {id_text} AS id
FROM {events} AS e
WHERE e.{status} IN ({pending}, {processing}) AND {subject} = $2
  AND (cardinality($1::text[]) = 0 OR {event_type} = ANY ($1::text[])) AND {filter}
LIMIT 10
