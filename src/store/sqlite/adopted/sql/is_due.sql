-- outbox: ask whether an event of an adopted table is due
-- ?1 id.
SELECT EXISTS (SELECT 1 FROM {events} WHERE {id} = ?1 AND {status} = {pending} AND {is_due} AND {filter})
