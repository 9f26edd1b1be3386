-- outbox: find the lanes of an adopted table by an index
-- Each step of the recursion is one probe.
WITH RECURSIVE lane(event_type) AS (
    SELECT (
        SELECT {type_column} FROM {events}
        WHERE {status} = {pending} AND {type_column} >= '' AND {type_column} < x''
        ORDER BY {type_column} LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT {type_column} FROM {events}
        WHERE {status} = {pending} AND {type_column} > lane.event_type AND {type_column} < x''
        ORDER BY {type_column} LIMIT 1
    )
    FROM lane
    WHERE lane.event_type IS NOT NULL
)
SELECT CAST(lane.event_type AS BLOB) FROM lane WHERE lane.event_type IS NOT NULL
