-- outbox: reap by id in an adopted table
-- $1 id.
WITH held AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{id} = $1::text::{id_type} AND e.{status} = {processing} AND {is_expired} AND {filter}
    FOR UPDATE SKIP LOCKED
)
{take_back}
