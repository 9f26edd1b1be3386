-- outbox: read one event of an adopted table
-- ?1 id, ?2 the largest payload that is read; -1 for none.
SELECT {event_columns}, {payload_within}
FROM {events}
WHERE {id} = ?1 AND {filter}
