-- outbox: in flight by subject
-- $1 types (all when empty), $2 subject.
SELECT e.{id}
FROM {events} AS e
WHERE e.{subject} = $2 AND e.{processed_at} IS NULL
  AND (cardinality($1::text[]) = 0 OR e.{event_type} = ANY ($1::text[]))
LIMIT 10
