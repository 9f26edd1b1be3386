-- outbox: survey an adopted table
-- Lanes come from a skip scan where an index leads to each type, from one pass over what is pending where none does. Of
-- each lane its first event is read in the order of due times: asked only whether one exists, a planner with old statistics
-- would read the table from its beginning.
SELECT lane.event_type::text AS event_type,
       coalesce(front.is_due, false) AS claimable,
       CASE WHEN NOT front.is_due AND front.at < '9999-12-30' THEN front.at END {available_at_zone} AS next_due_at
FROM ({lanes}) AS lane
LEFT JOIN LATERAL (
    SELECT e.{available_at} AS at, {is_due} AS is_due
    FROM {events} AS e
    WHERE e.{status} = {pending} AND {of_lane} AND {filter}
    ORDER BY e.{available_at}
    LIMIT 1) AS front ON true
WHERE lane.event_type IS NOT NULL
