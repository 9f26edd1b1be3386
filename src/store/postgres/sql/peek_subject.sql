-- outbox: peek at one subject's events
-- "Not processed" is written as the index on subjects has it, so that no plan can walk a whole lane for one subject.
-- $1 types, $2 the subject.
SELECT coalesce(bool_or(e.{available_at} <= now()), false) AS claimable,
       min(e.{available_at}) FILTER (WHERE e.{available_at} > now()) AS next_due_at
FROM {events} AS e
WHERE e.{subject} = $2 AND coalesce(e.{processed_at}, 'infinity') = 'infinity'
  AND e.{event_type} = ANY ($1::text[]) AND e.{target} = ''
  AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}
