WITH RECURSIVE found AS (
    (SELECT e.{type_column} AS event_type FROM {events} AS e
     WHERE e.{status} = {pending} AND e.{type_column} IS NOT NULL ORDER BY e.{type_column} LIMIT 1)
    UNION ALL
    SELECT (SELECT e.{type_column} FROM {events} AS e
            WHERE e.{status} = {pending} AND e.{type_column} > found.event_type ORDER BY e.{type_column} LIMIT 1)
    FROM found
    WHERE found.event_type IS NOT NULL
)
SELECT found.event_type FROM found
