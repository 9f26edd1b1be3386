-- outbox: discard a dead letter of an adopted table
-- $1 id, $2 reason, $3 who, $4 why or NULL.
WITH changed AS (
    UPDATE {events} AS e
    SET {status} = {skipped}{skip_rest}
    WHERE e.{id} = $1::text::{id_type} AND e.{status} = {dead_letter} AND $2::text IS NOT NULL AND {filter}
    RETURNING {event_columns}
),
noted AS (
    INSERT INTO {actions} (outbox, event_id, action, actor, note)
    SELECT {outbox_name}, changed.id, 'discard', $3, $4
    FROM changed
)
SELECT changed.*
FROM changed
