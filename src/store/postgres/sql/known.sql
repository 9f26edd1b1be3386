-- outbox: find what a replay repeats
-- $1 idempotency keys, $2 ids.
SELECT {event_columns}, e.{fingerprint} AS fingerprint,
       CASE WHEN e.{fingerprint} IS NULL THEN e.{payload}::text END AS payload
FROM {events} AS e
WHERE e.{idempotency_key} = ANY ($1::text[])
UNION ALL
SELECT {event_columns}, e.{fingerprint},
       CASE WHEN e.{fingerprint} IS NULL THEN e.{payload}::text END
FROM {events} AS e
WHERE e.{id} = ANY ($2::uuid[])
