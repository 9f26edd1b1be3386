-- outbox: claim one subject's events
-- "Not processed" is written as the index on subjects has it, so that no plan can walk a whole lane for one subject.
-- $1 types in ascending order, $2 the subject, $3 events at most, $4 leases in microseconds.
WITH picked AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{subject} = $2 AND coalesce(e.{processed_at}, 'infinity') = 'infinity'
      AND e.{event_type} = ANY ($1::text[]) AND e.{target} = ''
      AND e.{available_at} <= now()
      AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}
    ORDER BY e.{available_at}, e.{id}
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)
UPDATE {events} AS e
SET {status} = {processing},
    {locked_at} = now(),
    {lease_until} = now() + ($4::bigint[])[width_bucket(e.{event_type}, $1::text[])] * interval '1 microsecond',
    {claim_no} = e.{claim_no} + 1
WHERE e.{id} = ANY (ARRAY (SELECT picked.id FROM picked)) AND e.{status} = {pending}
RETURNING {claimed_columns}
