-- What operators did to events, and why: one line for each event that was changed by hand.
CREATE TABLE outbox_action (
    action_no INTEGER PRIMARY KEY,
    outbox TEXT NOT NULL,
    event_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('requeue', 'discard', 'cancel')),
    actor TEXT NOT NULL,
    note TEXT
);
CREATE INDEX outbox_action_event ON outbox_action (outbox, event_id, action_no);
