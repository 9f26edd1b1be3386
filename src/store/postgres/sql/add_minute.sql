-- outbox: add to the present minute
-- $1 outbox, $2 completed, $3 retried, $4 deferred, $5 skipped, $6 dead letters. What is older than two days goes.
WITH expired AS (
    DELETE FROM {minutes}
    WHERE outbox = $1 AND minute = ANY (ARRAY (
        SELECT m.minute
        FROM {minutes} AS m
        WHERE m.outbox = $1 AND m.minute < now() - interval '2 days'
        ORDER BY m.minute
        LIMIT 100
        FOR UPDATE SKIP LOCKED))
)
INSERT INTO {minutes} AS m (outbox, minute, completed, retried, deferred, skipped, dead_lettered)
VALUES ($1, date_trunc('minute', now()), $2, $3, $4, $5, $6)
ON CONFLICT (outbox, minute) DO UPDATE
SET completed = m.completed + excluded.completed,
    retried = m.retried + excluded.retried,
    deferred = m.deferred + excluded.deferred,
    skipped = m.skipped + excluded.skipped,
    dead_lettered = m.dead_lettered + excluded.dead_lettered
