-- outbox: peek
-- $1 types, $2 and $3 scan positions.
SELECT coalesce(bool_or(due.claimable), false) AS claimable, min(later.available_at) AS next_due_at
FROM unnest($1::text[], $2::timestamptz[], $3::uuid[]) AS lane (event_type, from_at, from_id)
LEFT JOIN LATERAL (
    SELECT true AS claimable
    FROM {events} AS e
    WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
      AND e.{available_at} <= now()
      AND (e.{available_at}, e.{id}) >= (lane.from_at, lane.from_id)
      AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}
    ORDER BY e.{available_at}, e.{id}
    LIMIT 1) AS due ON true
LEFT JOIN LATERAL (
    SELECT e.{available_at} AS available_at
    FROM {events} AS e
    WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
      AND e.{available_at} > now()
    ORDER BY e.{available_at}, e.{id}
    LIMIT 1) AS later ON true
