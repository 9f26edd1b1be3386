-- outbox: which of these are dead letters of an adopted table
-- ?1 ids as a JSON array.
SELECT {id_bytes}
FROM {events}
WHERE {id} IN (SELECT value FROM json_each(?1)) AND {status} = {dead_letter} AND {filter}
ORDER BY {id}
