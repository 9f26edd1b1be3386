-- outbox: purge
-- $1 and $2 ages in microseconds of completed and skipped events, $3 events at most.
-- Found by age of creation, which an event's end cannot precede; dead letters and live events never match.
WITH old AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{created_at} < now() - least($1::bigint, $2::bigint) * interval '1 microsecond'
      AND ((e.{status} = {completed} AND e.{processed_at} < now() - $1::bigint * interval '1 microsecond')
        OR (e.{status} = {skipped} AND e.{processed_at} < now() - $2::bigint * interval '1 microsecond'))
    LIMIT $3
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM {events} AS e
    WHERE e.{id} = ANY (ARRAY (SELECT old.id FROM old)) AND e.{status} IN ({completed}, {skipped})
    RETURNING e.{id} AS id
),
forgotten AS (
    DELETE FROM {attempts_log} AS a
    WHERE a.event_id = ANY (ARRAY (SELECT gone.id FROM gone))
),
unnoted AS (
    DELETE FROM {actions} AS a
    WHERE a.outbox = {own_outbox} AND a.event_id = ANY (ARRAY (SELECT gone.id::text FROM gone))
)
SELECT count(*) FROM gone
