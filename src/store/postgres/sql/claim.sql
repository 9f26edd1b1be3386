-- outbox: claim
-- $1 types in ascending order, $2 allowances, $3 and $4 scan positions, $5 leases in microseconds.
-- Picked in a MATERIALIZED CTE, so that no plan can claim more than the allowance, and updated by an array of ids, so
-- that no plan can join the whole table. A claim changes no indexed column: it is a HOT update.
WITH picked AS MATERIALIZED (
    SELECT due.id
    FROM unnest($1::text[], $2::integer[], $3::timestamptz[], $4::uuid[])
        AS lane (event_type, allowance, from_at, from_id)
    CROSS JOIN LATERAL (
        SELECT e.{id} AS id
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
          AND e.{available_at} <= now()
          AND (e.{available_at}, e.{id}) >= (lane.from_at, lane.from_id)
          AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}
        ORDER BY e.{available_at}, e.{id}
        LIMIT lane.allowance
        FOR UPDATE SKIP LOCKED) AS due
)
UPDATE {events} AS e
SET {status} = {processing},
    {locked_at} = now(),
    {lease_until} = now() + ($5::bigint[])[width_bucket(e.{event_type}, $1::text[])] * interval '1 microsecond',
    {claim_no} = e.{claim_no} + 1
WHERE e.{id} = ANY (ARRAY (SELECT picked.id FROM picked)) AND e.{status} = {pending}
RETURNING {claimed_columns}
