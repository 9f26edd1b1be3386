-- outbox: in flight by subject
-- "Not processed" is written as the index on subjects has it, so that no plan can walk a whole lane for one subject.
-- $1 types (all when empty), $2 subject.
SELECT e.{id}
FROM {events} AS e
WHERE e.{subject} = $2 AND coalesce(e.{processed_at}, 'infinity') = 'infinity'
  AND (cardinality($1::text[]) = 0 OR e.{event_type} = ANY ($1::text[]))
LIMIT 10
