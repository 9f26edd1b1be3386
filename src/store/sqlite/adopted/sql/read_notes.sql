-- outbox: read what was done to an event of an adopted table
-- ?1 id.
SELECT at, action, actor, note
FROM {actions}
WHERE outbox = {outbox_name} AND event_id = ?1
ORDER BY action_no
LIMIT 1000
