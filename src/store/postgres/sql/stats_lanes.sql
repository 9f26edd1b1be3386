-- outbox: lanes to count
-- $1 only types after this one, $2 lanes at most.
-- Two skip scans: over the live index and over that of the dead letters. One probe a lane, whatever it holds.
WITH RECURSIVE live AS (
    SELECT first.event_type, 1::bigint AS place
    FROM (
        SELECT e.{event_type} AS event_type
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} > $1
        ORDER BY e.{event_type}, e.{target}, e.{available_at}, e.{id}
        LIMIT 1) AS first
    UNION ALL
    SELECT next.event_type, live.place + 1
    FROM live
    CROSS JOIN LATERAL (
        SELECT e.{event_type} AS event_type
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} > live.event_type
        ORDER BY e.{event_type}, e.{target}, e.{available_at}, e.{id}
        LIMIT 1) AS next
    WHERE live.place < $2
),
dead AS (
    SELECT first.event_type, 1::bigint AS place
    FROM (
        SELECT e.{event_type} AS event_type
        FROM {events} AS e
        WHERE e.{dead_at} IS NOT NULL AND e.{event_type} > $1
        ORDER BY e.{event_type}, e.{dead_at}, e.{id}
        LIMIT 1) AS first
    UNION ALL
    SELECT next.event_type, dead.place + 1
    FROM dead
    CROSS JOIN LATERAL (
        SELECT e.{event_type} AS event_type
        FROM {events} AS e
        WHERE e.{dead_at} IS NOT NULL AND e.{event_type} > dead.event_type
        ORDER BY e.{event_type}, e.{dead_at}, e.{id}
        LIMIT 1) AS next
    WHERE dead.place < $2
)
SELECT now() AS as_of,
       ARRAY (
           SELECT lane.event_type
           FROM (SELECT live.event_type FROM live UNION SELECT dead.event_type FROM dead) AS lane
           ORDER BY lane.event_type
           LIMIT $2) AS types
