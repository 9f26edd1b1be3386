-- outbox: discard many
-- $1 ids, $2 reason, $3 who, $4 why or NULL.
WITH held AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{id} = ANY ($1::uuid[]) AND e.{status} = {dead_letter}
    ORDER BY e.{id}
    FOR UPDATE SKIP LOCKED
),
changed AS (
    UPDATE {events} AS e
    SET {discarded}
    WHERE e.{id} = ANY (ARRAY (SELECT held.id FROM held)) AND e.{status} = {dead_letter}
    RETURNING e.{id} AS id
),
noted AS (
    INSERT INTO {actions} (outbox, event_id, action, actor, note)
    SELECT {own_outbox}, changed.id::text, 'discard', $3, $4
    FROM changed
)
SELECT changed.id
FROM changed
