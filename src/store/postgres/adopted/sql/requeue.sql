-- outbox: requeue a dead letter of an adopted table
-- $1 id, $2 delay in microseconds, $3 attempts limit or NULL, $4 who, $5 why or NULL.
WITH changed AS (
    UPDATE {events} AS e
    SET {status} = {pending},
        {attempts} = 0,
        {available_at} = (now() + $2::bigint * interval '1 microsecond') {available_at_zone},
        {locked_at} = NULL{requeue_rest}
    WHERE e.{id} = $1::text::{id_type} AND e.{status} = {dead_letter} AND ($3::integer IS NULL OR true) AND {filter}
    RETURNING {event_columns}
),
noted AS (
    INSERT INTO {actions} (outbox, event_id, action, actor, note)
    SELECT {outbox_name}, changed.id, 'requeue', $4, $5
    FROM changed
)
SELECT changed.*
FROM changed
