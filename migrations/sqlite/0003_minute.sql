-- What became of attempts, minute by minute: one row for each outbox and minute in which something ended, for two days.
-- Each instance adds its part about every ten seconds.
CREATE TABLE outbox_minute (
    outbox TEXT NOT NULL,
    minute INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    dead_lettered INTEGER NOT NULL,
    PRIMARY KEY (outbox, minute)
) WITHOUT ROWID;
