-- outbox: find the lanes of an adopted table
SELECT DISTINCT {event_type}
FROM {events}
WHERE {status} = {pending} AND NOT {is_untyped} AND {filter}
