-- outbox: read one run
-- $1 id.
SELECT r.run_id, r.trigger, r.started_at, r.report::text AS report,
       r.finished_at IS NULL AND now() > r.lost_after AS lost
FROM {runs} AS r
WHERE r.run_id = $1
