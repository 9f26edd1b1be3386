-- outbox: list runs
-- $1 and $2 the run behind which to go on, $3 runs at most.
SELECT r.run_id, r.trigger, r.started_at, r.report::text AS report,
       r.finished_at IS NULL AND now() > r.lost_after AS lost
FROM {runs} AS r
WHERE (r.started_at, r.run_id) < ($1, $2)
ORDER BY r.started_at DESC, r.run_id DESC
LIMIT $3
