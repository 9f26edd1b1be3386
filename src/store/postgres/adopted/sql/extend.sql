-- outbox: extend a lease on an event of an adopted table
-- $1 id, $2 fence, $3 microseconds from now. A lease ends a fixed time after the instant of its claim, so that one moves;
-- where it is the fence, never backwards.
UPDATE {events} AS e
SET {locked_at} = greatest((now() + $3::bigint * interval '1 microsecond' - {lease}) {locked_at_zone}, {not_earlier})
WHERE e.{id} = $1::text::{id_type} AND e.{status} = {processing} AND {fence} = $2
RETURNING {id_text} AS id, {fence} AS claim_no
