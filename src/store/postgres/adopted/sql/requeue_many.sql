-- outbox: requeue many dead letters of an adopted table
-- $1 ids, $2 microseconds over which the due times are spread, $3 NULL, $4 who, $5 why or NULL.
WITH held AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{id} = ANY ($1::text[]::{id_type}[]) AND e.{status} = {dead_letter} AND {filter}
    ORDER BY e.{id}
    FOR UPDATE SKIP LOCKED
),
changed AS (
    UPDATE {events} AS e
    SET {status} = {pending},
        {attempts} = 0,
        {available_at} = (now() + random() * $2::bigint * interval '1 microsecond') {available_at_zone},
        {locked_at} = NULL{requeue_rest}
    WHERE e.{id} = ANY (ARRAY (SELECT held.id FROM held)) AND e.{status} = {dead_letter} AND ($3::integer IS NULL OR true)
    RETURNING {id_text} AS id
),
noted AS (
    INSERT INTO {actions} (outbox, event_id, action, actor, note)
    SELECT {outbox_name}, changed.id, 'requeue', $4, $5
    FROM changed
)
SELECT changed.id
FROM changed
