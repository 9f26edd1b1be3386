-- outbox: discard a dead letter of an adopted table
-- $1 id, $2 reason.
UPDATE {events} AS e
SET {status} = {skipped}{skip_rest}
WHERE e.{id} = $1::text::{id_type} AND e.{status} = {dead_letter} AND $2::text IS NOT NULL AND {filter}
RETURNING {event_columns}
