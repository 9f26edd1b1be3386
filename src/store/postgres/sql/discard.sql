-- outbox: discard
-- $1 id, $2 reason, $3 who, $4 why or NULL.
WITH changed AS (
    UPDATE {events} AS e
    SET {discarded}
    WHERE e.{id} = $1 AND e.{status} = {dead_letter}
    RETURNING {event_columns}
),
noted AS (
    INSERT INTO {actions} (outbox, event_id, action, actor, note)
    SELECT {own_outbox}, changed.{id}::text, 'discard', $3, $4
    FROM changed
)
SELECT changed.*
FROM changed
