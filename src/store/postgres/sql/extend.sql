-- outbox: extend a lease
-- $1 id, $2 claim number, $3 microseconds from now.
UPDATE {events} AS e
SET {lease_until} = now() + $3::bigint * interval '1 microsecond'
WHERE e.{id} = $1 AND e.{status} = {processing} AND e.{claim_no} = $2
RETURNING e.{id}
