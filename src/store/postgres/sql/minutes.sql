-- outbox: read minutes
-- $1 outbox, $2 minutes back from now.
SELECT m.minute, m.completed, m.retried, m.deferred, m.skipped, m.dead_lettered
FROM {minutes} AS m
WHERE m.outbox = $1 AND m.minute > now() - $2::integer * interval '1 minute'
ORDER BY m.minute
