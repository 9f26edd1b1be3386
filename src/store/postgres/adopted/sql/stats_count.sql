-- outbox: count lanes of an adopted table
-- $1 types, $2 rows to look at in each lane for due and processing events, $3 for scheduled ones, $4 for dead letters.
SELECT lane.event_type,
       due.count AS due,
       processing.count AS processing,
       scheduled.count AS scheduled,
       dead.count AS dead_letter,
       (extract(epoch FROM now() - CASE WHEN oldest.due_at < '0001-01-02 00:00Z' THEN '0001-01-02 00:00Z'::timestamptz
                                        ELSE oldest.due_at END) * 1000000)::bigint AS oldest_due_micros
FROM unnest($1::text[]) AS lane (event_type)
CROSS JOIN LATERAL (
    SELECT count(*) AS count
    FROM (
        SELECT 1 FROM {events} AS e
        WHERE e.{status} = {processing} AND {of_lane} AND {filter}
        LIMIT $2) AS seen) AS processing
CROSS JOIN LATERAL (
    SELECT count(*) AS count
    FROM (
        SELECT 1 FROM {events} AS e
        WHERE e.{status} = {pending} AND {of_lane} AND {is_due} AND {filter}
        LIMIT $2 - processing.count) AS seen) AS due
CROSS JOIN LATERAL (
    SELECT count(*) AS count
    FROM (
        SELECT 1 FROM {events} AS e
        WHERE e.{status} = {pending} AND {of_lane} AND NOT {is_due} AND {filter}
        LIMIT $3) AS seen) AS scheduled
CROSS JOIN LATERAL (
    SELECT count(*) AS count
    FROM (
        SELECT 1 FROM {events} AS e
        WHERE e.{status} = {dead_letter} AND {of_lane} AND {filter}
        LIMIT $4) AS seen) AS dead
CROSS JOIN LATERAL (
    SELECT (SELECT min(e.{available_at}) FROM {events} AS e
            WHERE e.{status} = {pending} AND {of_lane} AND {is_due} AND {filter}) {available_at_zone} AS due_at) AS oldest
