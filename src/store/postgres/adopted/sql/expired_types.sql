-- outbox: find lanes with expired claims in an adopted table
SELECT DISTINCT {event_type} AS event_type
FROM {events} AS e
WHERE e.{status} = {processing} AND {is_expired} AND {filter}
