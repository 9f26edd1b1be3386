-- outbox: claim by id
-- $1 id, $2 lease in microseconds.
WITH picked AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{id} = $1 AND e.{processed_at} IS NULL AND e.{available_at} <= now() AND e.{status} = {pending}
      AND e.{claim_no} < {last_claim_no}
    FOR UPDATE SKIP LOCKED
)
UPDATE {events} AS e
SET {status} = {processing},
    {locked_at} = now(),
    {lease_until} = now() + $2::bigint * interval '1 microsecond',
    {claim_no} = e.{claim_no} + 1
WHERE e.{id} = ANY (ARRAY (SELECT picked.id FROM picked)) AND e.{status} = {pending}
RETURNING {claimed_columns}
