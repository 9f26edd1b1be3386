-- outbox: requeue
-- $1 id, $2 delay in microseconds, $3 attempts limit or NULL, $4 who, $5 why or NULL.
WITH changed AS (
    UPDATE {events} AS e
    SET {requeued},
        {max_attempts} = coalesce($3, e.{max_attempts}),
        {available_at} = now() + $2::bigint * interval '1 microsecond'
    WHERE e.{id} = $1 AND e.{status} = {dead_letter}
    RETURNING {event_columns}
),
noted AS (
    INSERT INTO {actions} (outbox, event_id, action, actor, note)
    SELECT {own_outbox}, changed.{id}::text, 'requeue', $4, $5
    FROM changed
)
SELECT changed.*
FROM changed
