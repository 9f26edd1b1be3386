-- What operators did to events, and why: one line for each event that was changed by hand.
CREATE TABLE outbox.action (
    -- Several outboxes may be served beside this database's own; ids are unique within one.
    outbox text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    action_no bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    action text COLLATE "C" NOT NULL CHECK (action IN ('requeue', 'discard', 'cancel')),
    actor text NOT NULL,
    note text,
    PRIMARY KEY (outbox, event_id, action_no)
);
