-- outbox: discard many dead letters of an adopted table
-- $1 ids, $2 reason, $3 who, $4 why or NULL.
WITH held AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{id} = ANY ($1::text[]::{id_type}[]) AND e.{status} = {dead_letter} AND {filter}
    ORDER BY e.{id}
    FOR UPDATE SKIP LOCKED
),
changed AS (
    UPDATE {events} AS e
    SET {status} = {skipped}{skip_rest}
    WHERE e.{id} = ANY (ARRAY (SELECT held.id FROM held)) AND e.{status} = {dead_letter} AND $2::text IS NOT NULL
    RETURNING {id_text} AS id
),
noted AS (
    INSERT INTO {actions} (outbox, event_id, action, actor, note)
    SELECT {outbox_name}, changed.id, 'discard', $3, $4
    FROM changed
)
SELECT changed.id
FROM changed
