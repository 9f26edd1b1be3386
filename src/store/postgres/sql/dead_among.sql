-- outbox: which of these are dead letters
-- $1 ids.
SELECT e.{id} AS id
FROM {events} AS e
WHERE e.{id} = ANY ($1::uuid[]) AND e.{status} = {dead_letter}
ORDER BY e.{id}
