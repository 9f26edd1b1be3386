-- outbox: discard
-- $1 id, $2 reason.
UPDATE {events} AS e
SET {status} = {skipped}, {processed_at} = now(), {dead_at} = NULL, {last_error} = coalesce(nullif($2, ''), e.{last_error})
WHERE e.{id} = $1 AND e.{status} = {dead_letter}
RETURNING {event_columns}
