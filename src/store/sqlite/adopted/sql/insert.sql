-- outbox: enqueue into an adopted table
-- ?1 id, ?2 type, ?3 payload, ?4 subject, ?5 headers, ?6 attempts limit, ?7 due instant or NULL, ?8 delay, both in
-- microseconds.
INSERT INTO {events} ({insert_columns})
VALUES ({insert_values})
ON CONFLICT DO NOTHING
RETURNING {event_columns}, NULL
