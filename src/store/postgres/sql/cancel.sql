-- outbox: cancel
-- $1 id, $2 reason.
UPDATE {events} AS e
SET {status} = {skipped}, {processed_at} = now(), {deferred_since} = NULL, {last_error} = $2
WHERE e.{id} = $1 AND e.{status} = {pending}
RETURNING {event_columns}
