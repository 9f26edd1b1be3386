-- outbox: ask whether an event is due
-- $1 id.
SELECT EXISTS (
    SELECT 1
    FROM {events} AS e
    WHERE e.{id} = $1 AND e.{status} = {pending} AND e.{available_at} <= now())
