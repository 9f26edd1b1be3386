-- outbox: bury a claimed event of an adopted table that cannot be delivered
-- ?1 id, ?2 fence, ?3 why.
UPDATE {events}
SET {status} = {dead_letter}, {locked_at} = NULL{bury_claimed_rest}
WHERE {id} = ?1 AND {status} = {processing} AND {fence} = ?2
