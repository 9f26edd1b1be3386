-- outbox: count an adopted table at once
-- $1 rows to look at in each state. No index leads to the lanes: those events are counted that come first, the pending ones
-- in the order of their due times.
SELECT seen.event_type,
       count(*) FILTER (WHERE seen.state = 'due') AS due,
       count(*) FILTER (WHERE seen.state = 'processing') AS processing,
       count(*) FILTER (WHERE seen.state = 'scheduled') AS scheduled,
       count(*) FILTER (WHERE seen.state = 'dead_letter') AS dead_letter,
       (extract(epoch FROM now() - CASE WHEN min(seen.due_at) < '0001-01-02 00:00Z'
                                        THEN '0001-01-02 00:00Z'::timestamptz
                                        ELSE min(seen.due_at) END) * 1000000)::bigint AS oldest_due_micros
FROM (
    (SELECT {event_type} AS event_type, CASE WHEN {is_due} THEN 'due' ELSE 'scheduled' END AS state,
            CASE WHEN {is_due} THEN e.{available_at} {available_at_zone} END AS due_at
     FROM {events} AS e
     WHERE e.{status} = {pending} AND {filter}
     ORDER BY e.{available_at}
     LIMIT $1)
    UNION ALL
    (SELECT {event_type}, 'processing', NULL
     FROM {events} AS e
     WHERE e.{status} = {processing} AND {filter}
     LIMIT $1)
    UNION ALL
    (SELECT {event_type}, 'dead_letter', NULL
     FROM {events} AS e
     WHERE e.{status} = {dead_letter} AND {filter}
     LIMIT $1)) AS seen
WHERE seen.event_type IS NOT NULL
GROUP BY seen.event_type
ORDER BY seen.event_type COLLATE "C"
