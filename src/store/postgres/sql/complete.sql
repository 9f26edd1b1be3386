-- outbox: settle completed events without a line in the log
-- $1 ids in order, $2 their claim numbers. The fence is looked up per row; a join could be planned the wrong way round.
UPDATE {events} AS e
SET {status} = {completed},
    {processed_at} = now(),
    {locked_at} = NULL,
    {lease_until} = NULL,
    {deferred_since} = NULL
WHERE e.{id} = ANY ($1::uuid[])
  AND e.{status} = {processing}
  AND e.{claim_no} = ($2::bigint[])[array_position($1::uuid[], e.{id})]
RETURNING e.{id}, e.{claim_no}
