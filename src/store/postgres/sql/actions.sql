-- outbox: read what was done to an event
-- $1 id.
SELECT a.at, a.action, a.actor, a.note
FROM {actions} AS a
WHERE a.outbox = {own_outbox} AND a.event_id = $1::uuid::text
ORDER BY a.action_no
LIMIT 1000
