-- outbox: ask whether an event of an adopted table is due
-- $1 id.
SELECT EXISTS (
    SELECT 1 FROM {events} AS e
    WHERE e.{id} = $1::text::{id_type} AND e.{status} = {pending} AND {is_due} AND {filter})
