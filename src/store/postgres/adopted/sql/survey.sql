-- outbox: survey an adopted table
-- Lanes come from a skip scan where an index leads to each type, from one pass over what is pending where none does.
SELECT lane.event_type::text AS event_type,
       front.claimable,
       CASE WHEN NOT front.claimable THEN (
           SELECT min(e.{available_at}) FROM {events} AS e
           WHERE e.{status} = {pending} AND {of_lane} AND NOT {is_due} AND e.{available_at} < '9999-12-30'
             AND {filter}) END {available_at_zone} AS next_due_at
FROM ({lanes}) AS lane
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT 1 FROM {events} AS e
        WHERE e.{status} = {pending} AND {of_lane} AND {is_due} AND {filter}) AS claimable) AS front
WHERE lane.event_type IS NOT NULL
