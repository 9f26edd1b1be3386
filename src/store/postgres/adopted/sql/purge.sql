-- outbox: purge an adopted table
-- $1 and $2 ages in microseconds of completed and skipped events, $3 events at most. Dead letters and live events never match.
WITH old AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE ((e.{status} = {completed} AND {ended_at} < now() - $1::bigint * interval '1 microsecond')
        OR ({has_skipped} AND e.{status} = {skipped} AND {ended_at} < now() - $2::bigint * interval '1 microsecond'))
      AND {filter}
    LIMIT $3
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM {events} AS e
    WHERE e.{id} = ANY (ARRAY (SELECT old.id FROM old)) AND e.{status} IN ({completed}, {skipped}) AND {filter}
    RETURNING {id_text} AS id
),
unnoted AS (
    DELETE FROM {actions} AS a
    WHERE a.outbox = {outbox_name} AND a.event_id = ANY (ARRAY (SELECT gone.id FROM gone))
)
SELECT count(*) FROM gone
