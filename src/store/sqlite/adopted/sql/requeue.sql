-- outbox: requeue a dead letter of an adopted table
-- ?1 id, ?2 delay in microseconds, ?3 attempts limit or NULL.
UPDATE {events}
SET {status} = {pending}, {attempts} = 0, {available_at} = {due_later}, {locked_at} = NULL{requeue_rest}
WHERE {id} = ?1 AND {status} = {dead_letter} AND {filter}
RETURNING {event_columns}, NULL
