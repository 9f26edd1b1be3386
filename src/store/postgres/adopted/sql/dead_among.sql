-- outbox: which of these rows of an adopted table are dead letters
-- $1 ids.
SELECT {id_text} AS id
FROM {events} AS e
WHERE e.{id} = ANY ($1::text[]::{id_type}[]) AND e.{status} = {dead_letter} AND {filter}
ORDER BY e.{id}
