-- outbox: cancel an event of an adopted table
-- $1 id, $2 reason.
UPDATE {events} AS e
SET {status} = {skipped}{skip_rest}
WHERE e.{id} = $1::text::{id_type} AND e.{status} = {pending} AND $2::text IS NOT NULL AND {filter}
RETURNING {event_columns}
