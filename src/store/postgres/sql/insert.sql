-- outbox: enqueue
-- Arrays with one place per event: $1 ids (NULL: made here), $2 types, $3 subjects, $4 payloads, $5 headers, $6 keys,
-- $7 fingerprints, $8 attempts limits, $9 due instants (NULL: from the delay), $10 delays in milliseconds. $11 how many
-- milliseconds to wait for an uncommitted row with the same key or id: set for this statement, before it writes.
WITH patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', $11, true)
),
new AS MATERIALIZED (
    SELECT coalesce(given.id, outbox.uuid_v7()) AS id, given.place, given.event_type, given.subject,
           given.payload::json AS payload, given.headers::json AS headers, given.idempotency_key, given.fingerprint,
           given.max_attempts, coalesce(given.due_at, now() + given.delay_ms * interval '1 millisecond') AS available_at
    FROM patience,
         unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::integer[],
                $9::timestamptz[], $10::bigint[])
            WITH ORDINALITY
            AS given (id, event_type, subject, payload, headers, idempotency_key, fingerprint, max_attempts, due_at,
                      delay_ms, place)
),
written AS (
    INSERT INTO {events} AS e
        ({id}, {event_type}, {subject}, {payload}, {headers}, {idempotency_key}, {fingerprint}, {max_attempts},
         {available_at})
    SELECT new.id, new.event_type, new.subject, new.payload, new.headers, new.idempotency_key, new.fingerprint,
           new.max_attempts, new.available_at
    FROM new
    ORDER BY new.place
    ON CONFLICT DO NOTHING
    RETURNING {id}, {idempotency_key}, {created_at}, {available_at}
)
-- Nothing else has come out other than it was given.
SELECT new.place, e.{id}, e.{created_at}, e.{available_at}
FROM new
JOIN written AS e ON e.{id} = new.id AND e.{idempotency_key} IS NOT DISTINCT FROM new.idempotency_key
