-- outbox: reap by id
-- $1 id.
WITH held AS MATERIALIZED (
    SELECT e.{id} AS id, e.{claim_no} AS claim_no, e.{attempts} AS attempts, e.{locked_at} AS locked_at
    FROM {events} AS e
    WHERE e.{id} = $1 AND e.{status} = {processing} AND coalesce(e.{lease_until} < now(), true)
    FOR UPDATE SKIP LOCKED
),
{take_back}
SELECT taken.id, taken.event_type, taken.status FROM taken
