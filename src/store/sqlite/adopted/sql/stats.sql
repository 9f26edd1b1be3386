-- outbox: count an adopted table at once
-- ?1 rows to look at in each state: those that come first, the pending ones in the order of their due times.
SELECT
    event_type,
    COALESCE(SUM(state = 'due'), 0),
    COALESCE(SUM(state = 'scheduled'), 0),
    COALESCE(SUM(state = 'processing'), 0),
    COALESCE(SUM(state = 'dead_letter'), 0),
    {now} - MIN(due_us)
FROM (
    SELECT * FROM (
        SELECT {event_type} AS event_type, CASE WHEN {is_due} THEN 'due' ELSE 'scheduled' END AS state,
               CASE WHEN {is_due} THEN {available_us} END AS due_us
        FROM {events}
        WHERE {status} = {pending} AND NOT {is_untyped} AND {filter}
        ORDER BY {available_at}
        LIMIT ?1)
    UNION ALL
    SELECT * FROM (
        SELECT {event_type}, 'processing', NULL
        FROM {events}
        WHERE {status} = {processing} AND NOT {is_untyped} AND {filter}
        LIMIT ?1)
    UNION ALL
    SELECT * FROM (
        SELECT {event_type}, 'dead_letter', NULL
        FROM {events}
        WHERE {status} = {dead_letter} AND NOT {is_untyped} AND {filter}
        LIMIT ?1))
GROUP BY event_type
ORDER BY event_type
