-- outbox: read what was done to an event of an adopted table
-- $1 id.
SELECT a.at, a.action, a.actor, a.note
FROM {actions} AS a
WHERE a.outbox = {outbox_name} AND a.event_id = $1
ORDER BY a.action_no
LIMIT 1000
