-- outbox: look how instants are kept in an adopted table
SELECT typeof({available_at}), CAST({available_at} AS TEXT)
FROM {events}
WHERE {available_at} IS NOT NULL
ORDER BY {key} DESC
LIMIT 20
