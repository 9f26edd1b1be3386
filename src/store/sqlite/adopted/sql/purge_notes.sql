-- outbox: purge what was noted of events of an adopted table
-- ?1 ids as a JSON array.
DELETE FROM {actions}
WHERE outbox = {outbox_name} AND event_id IN (SELECT value FROM json_each(?1))
