-- outbox: note what was done to an event of an adopted table
-- ?1 id, ?2 action, ?3 who, ?4 why or NULL.
INSERT INTO {actions} (outbox, event_id, at, action, actor, note)
VALUES ({outbox_name}, ?1, {now}, ?2, ?3, ?4)
