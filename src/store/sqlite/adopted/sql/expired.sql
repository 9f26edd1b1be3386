-- outbox: find expired claims in an adopted table
-- ?1 types, ?2 events at most.
SELECT {id_bytes}
FROM {events}
WHERE {status} = {processing} AND {is_expired} AND {of_types} AND {filter}
ORDER BY {locked_at}
LIMIT ?2
