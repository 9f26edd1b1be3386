-- outbox: extend a lease on an event of an adopted table
-- ?1 id, ?2 fence, ?3 microseconds from now. A lease ends a fixed time after the instant of its claim, so that one moves.
UPDATE {events}
SET {locked_at} = {extended_at}
WHERE {id} = ?1 AND {status} = {processing} AND {fence} = ?2
RETURNING {fence}
