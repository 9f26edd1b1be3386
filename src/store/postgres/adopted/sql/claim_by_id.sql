-- outbox: claim by id from an adopted table
-- $1 id.
WITH picked AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{id} = $1::text::{id_type} AND e.{status} = {pending} AND {is_due} AND {event_type} IS NOT NULL
      AND {filter}
    FOR UPDATE SKIP LOCKED
)
UPDATE {events} AS e
SET {status} = {processing}, {locked_at} = now() {locked_at_zone}{count_claim}
WHERE e.{id} = ANY (ARRAY (SELECT picked.id FROM picked)) AND e.{status} = {pending}
RETURNING {claimed_columns}
