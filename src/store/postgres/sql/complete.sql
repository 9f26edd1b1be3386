-- outbox: settle completed events without a line in the log
-- $1 ids in ascending order, $2 their claim numbers. The fence is looked up per row, by a binary search: a join could be
-- planned the wrong way round, and a linear search would make large batches dear.
UPDATE {events} AS e
SET {status} = {completed},
    {processed_at} = now(),
    {locked_at} = NULL,
    {lease_until} = NULL,
    {deferred_since} = NULL
WHERE e.{id} = ANY ($1::uuid[])
  AND e.{status} = {processing}
  AND e.{claim_no} = ($2::bigint[])[width_bucket(e.{id}, $1::uuid[])]
RETURNING e.{id}, e.{claim_no}
