-- outbox: cancel an event of an adopted table
-- ?1 id, ?2 reason.
UPDATE {events}
SET {status} = {skipped}{skip_rest}
WHERE {id} = ?1 AND {status} = {pending} AND {filter}
RETURNING {event_columns}, NULL
