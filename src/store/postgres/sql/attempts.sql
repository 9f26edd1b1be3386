-- outbox: read an event's attempts
-- $1 id.
SELECT a.number, a.claim_no, a.started_at, a.duration_ms, a.outcome, a.status_code, a.error, a.response
FROM {attempts_log} AS a
WHERE a.event_id = $1
ORDER BY a.claim_no
LIMIT 1000
