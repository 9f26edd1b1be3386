-- outbox: survey
-- $1 only types after this one, $2 lanes at most.
-- A skip scan over the live index: one probe finds the next lane and its first event. Only where that one is due a second
-- looks for the next that is not, and only where it is claimed a third for the first that is not. Nothing here depends on
-- how many events a lane holds.
WITH RECURSIVE front AS (
    (SELECT e.{event_type} AS event_type, e.{target} AS target, e.{available_at} AS available_at, e.{id} AS id,
            e.{status} = {pending} AND e.{claim_no} < {last_claim_no} AS claimable
     FROM {events} AS e
     WHERE e.{processed_at} IS NULL AND e.{event_type} > $1
     ORDER BY e.{event_type}, e.{target}, e.{available_at}, e.{id}
     LIMIT 1)
    UNION ALL
    SELECT next.*
    FROM front
    CROSS JOIN LATERAL (
        SELECT e.{event_type} AS event_type, e.{target} AS target, e.{available_at} AS available_at, e.{id} AS id,
               e.{status} = {pending} AND e.{claim_no} < {last_claim_no} AS claimable
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} > front.event_type
        ORDER BY e.{event_type}, e.{target}, e.{available_at}, e.{id}
        LIMIT 1) AS next
)
SELECT lane.event_type,
       lane.due AND NOT lane.claimable AS claimed_at_front,
       claimable.available_at AS claimable_at,
       claimable.id AS claimable_id,
       CASE WHEN lane.due THEN later.available_at ELSE lane.available_at END AS next_due_at
FROM (SELECT front.*, front.available_at <= now() AS due FROM front WHERE front.target = '' LIMIT $2) AS lane
LEFT JOIN LATERAL (
    SELECT lane.available_at, lane.id
    WHERE lane.due AND lane.claimable
    UNION ALL
    SELECT pending.available_at, pending.id
    FROM (
        SELECT e.{available_at} AS available_at, e.{id} AS id
        FROM {events} AS e
        WHERE lane.due AND NOT lane.claimable
          AND e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
          AND e.{available_at} <= now()
          AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}
        ORDER BY e.{available_at}, e.{id}
        LIMIT 1) AS pending) AS claimable ON true
LEFT JOIN LATERAL (
    SELECT e.{available_at} AS available_at
    FROM {events} AS e
    WHERE lane.due
      AND e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
      AND e.{available_at} > now()
    ORDER BY e.{available_at}, e.{id}
    LIMIT 1) AS later ON true
