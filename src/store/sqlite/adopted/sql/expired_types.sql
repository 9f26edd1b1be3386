-- outbox: find lanes with expired claims in an adopted table
SELECT DISTINCT {event_type}
FROM {events}
WHERE {status} = {processing} AND {is_expired} AND NOT {is_untyped} AND {filter}
