-- outbox: save a run
-- $1 id, $2 trigger, $3 report, $4 whether it has finished, $5 whether it was idle, $6 milliseconds it has taken,
-- $7 milliseconds until it counts as lost. An idle run that was not announced is kept at most once a minute. A report
-- that comes late does not undo the final one.
WITH expired AS (
    DELETE FROM {runs}
    WHERE run_id = ANY (ARRAY (
        SELECT r.run_id FROM {runs} AS r WHERE r.started_at < now() - interval '7 days' ORDER BY r.started_at LIMIT 100))
)
INSERT INTO {runs} AS r (run_id, trigger, started_at, finished_at, lost_after, idle, report)
SELECT $1, $2, now() - $6::bigint * interval '1 millisecond', CASE WHEN $4 THEN now() END,
       now() + $7::bigint * interval '1 millisecond', $5, $3::json
WHERE NOT ($4 AND $5)
   OR EXISTS (SELECT 1 FROM {runs} AS known WHERE known.run_id = $1)
   OR NOT EXISTS (
        SELECT 1 FROM {runs} AS recent
        WHERE recent.started_at > now() - interval '1 minute' AND recent.idle AND recent.finished_at IS NOT NULL)
ON CONFLICT (run_id) DO UPDATE
SET report = excluded.report, finished_at = excluded.finished_at, idle = excluded.idle
WHERE r.finished_at IS NULL OR excluded.finished_at IS NOT NULL
