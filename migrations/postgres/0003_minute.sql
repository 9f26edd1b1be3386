-- What became of attempts, minute by minute: one row for each outbox and minute in which something ended, for two days.
-- Each instance adds its part about every ten seconds.
CREATE TABLE outbox.minute (
    outbox text COLLATE "C" NOT NULL,
    minute timestamptz NOT NULL,
    completed bigint NOT NULL,
    retried bigint NOT NULL,
    deferred bigint NOT NULL,
    skipped bigint NOT NULL,
    dead_lettered bigint NOT NULL,
    PRIMARY KEY (outbox, minute)
);
