-- outbox: survey
-- $1 only types after this one, $2 lanes at most.
-- A skip scan over the live index: one probe finds the next lane, one its first event, and only where that one is due
-- a third looks for the next that is not. Nothing here depends on how many events a lane holds.
WITH RECURSIVE lane AS (
    (SELECT e.{event_type} AS event_type
     FROM {events} AS e
     WHERE e.{processed_at} IS NULL AND e.{event_type} > $1
     ORDER BY e.{event_type}
     LIMIT 1)
    UNION ALL
    SELECT next.event_type
    FROM lane
    CROSS JOIN LATERAL (
        SELECT e.{event_type} AS event_type
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} > lane.event_type
        ORDER BY e.{event_type}
        LIMIT 1) AS next
)
SELECT lane.event_type,
       front.due AND NOT front.claimable AS claimed_at_front,
       claimable.available_at AS claimable_at,
       claimable.id AS claimable_id,
       CASE WHEN front.due THEN later.available_at ELSE front.available_at END AS next_due_at
FROM (SELECT event_type FROM lane LIMIT $2) AS lane
CROSS JOIN LATERAL (
    SELECT e.{id} AS id,
           e.{available_at} AS available_at,
           e.{available_at} <= now() AS due,
           e.{status} = {pending} AND e.{claim_no} < {last_claim_no} AS claimable
    FROM {events} AS e
    WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
    ORDER BY e.{available_at}, e.{id}
    LIMIT 1) AS front
LEFT JOIN LATERAL (
    SELECT front.available_at, front.id
    WHERE front.due AND front.claimable
    UNION ALL
    SELECT pending.available_at, pending.id
    FROM (
        SELECT e.{available_at} AS available_at, e.{id} AS id
        FROM {events} AS e
        WHERE front.due AND NOT front.claimable
          AND e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
          AND e.{available_at} <= now()
          AND e.{status} = {pending} AND e.{claim_no} < {last_claim_no}
        ORDER BY e.{available_at}, e.{id}
        LIMIT 1) AS pending) AS claimable ON true
LEFT JOIN LATERAL (
    SELECT e.{available_at} AS available_at
    FROM {events} AS e
    WHERE front.due
      AND e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
      AND e.{available_at} > now()
    ORDER BY e.{available_at}, e.{id}
    LIMIT 1) AS later ON true
