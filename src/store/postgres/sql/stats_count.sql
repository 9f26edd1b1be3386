-- outbox: count lanes
-- $1 types, $2 rows to look at in each lane for due and processing events, $3 for scheduled ones, $4 for dead letters.
-- The status stands in no index, so due and processing events are told apart in the table; the others are counted in their
-- index. The age is that of the first pending event in the lane's order, however far the count goes.
SELECT lane.event_type,
       due.pending AS due,
       due.processing AS processing,
       scheduled.count AS scheduled,
       dead.count AS dead_letter,
       (extract(epoch FROM now() - oldest.available_at) * 1000000)::bigint AS oldest_due_micros
FROM unnest($1::text[]) AS lane (event_type)
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE seen.status = {pending}) AS pending,
           count(*) FILTER (WHERE seen.status = {processing}) AS processing
    FROM (
        SELECT e.{status} AS status
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
          AND e.{available_at} <= now()
        ORDER BY e.{available_at}, e.{id}
        LIMIT $2) AS seen) AS due
CROSS JOIN LATERAL (
    SELECT count(*) AS count
    FROM (
        SELECT 1
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
          AND e.{available_at} > now()
        ORDER BY e.{available_at}, e.{id}
        LIMIT $3) AS seen) AS scheduled
CROSS JOIN LATERAL (
    SELECT count(*) AS count
    FROM (
        SELECT 1
        FROM {events} AS e
        WHERE e.{dead_at} IS NOT NULL AND e.{event_type} = lane.event_type
        ORDER BY e.{dead_at}, e.{id}
        LIMIT $4) AS seen) AS dead
LEFT JOIN LATERAL (
    SELECT e.{available_at} AS available_at
    FROM {events} AS e
    WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
      AND e.{available_at} <= now()
      AND e.{status} = {pending}
    ORDER BY e.{available_at}, e.{id}
    LIMIT 1) AS oldest ON true
