-- outbox: the only lane of an adopted table
SELECT {event_type}
