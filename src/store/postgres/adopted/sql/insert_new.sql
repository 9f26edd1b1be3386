-- outbox: enqueue into an adopted table, under an id of our own
-- $1 id or NULL, $2 type, $3 payload, $4 subject, $5 headers, $6 attempts limit, $7 due instant or NULL, $8 delay in
-- milliseconds.
INSERT INTO {events} AS e ({insert_columns})
SELECT {insert_values}
WHERE $1::text IS NOT NULL OR $2::text IS NOT NULL OR $4::text IS NULL OR $5::text IS NULL OR $6::integer IS NULL
RETURNING {event_columns}
