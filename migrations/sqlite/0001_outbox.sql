-- The outbox in a SQLite file. An application enqueues with a plain INSERT inside its own transaction:
--   INSERT INTO outbox_event (event_type, payload) VALUES ('invoice.created', '{"id":42}');
-- Needs SQLite 3.35 or newer in the application. Instants are whole microseconds since the Unix epoch, UTC.

CREATE TABLE outbox_event (
    -- A UUID version 7, in lower case.
    id TEXT NOT NULL PRIMARY KEY DEFAULT (lower(printf(
        '%08x-%04x-7%03x-%04x-%s',
        (CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER)) >> 16,
        (CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER)) & 65535,
        random() & 4095,
        32768 | (random() & 16383),
        hex(randomblob(6))
    ))) CHECK (
        typeof(id) = 'text'
        AND length(CAST(id AS BLOB)) = 36
        AND length(replace(id, '-', '')) = 32
        AND id GLOB '????????-????-????-????-????????????'
        AND id NOT GLOB '*[^0-9a-f-]*'
    ),
    event_type TEXT NOT NULL CHECK (
        typeof(event_type) = 'text'
        AND length(CAST(event_type AS BLOB)) BETWEEN 1 AND 200
        AND instr(event_type, char(0)) = 0
        AND event_type NOT GLOB '*[^A-Za-z0-9._:/-]*'
    ),
    target TEXT NOT NULL DEFAULT '' CHECK (typeof(target) = 'text'),
    subject TEXT CHECK (
        subject IS NULL OR (typeof(subject) = 'text' AND length(subject) <= 255 AND instr(subject, char(0)) = 0)
    ),
    payload TEXT NOT NULL CHECK (typeof(payload) = 'text' AND json_valid(payload)),
    headers TEXT NOT NULL DEFAULT '{}' CHECK (
        typeof(headers) = 'text'
        AND CASE WHEN json_valid(headers) THEN json_type(headers) = 'object' ELSE 0 END
    ),
    idempotency_key TEXT CHECK (
        idempotency_key IS NULL
        OR (
            typeof(idempotency_key) = 'text'
            AND length(CAST(idempotency_key AS BLOB)) BETWEEN 1 AND 255
            AND instr(idempotency_key, char(0)) = 0
        )
    ),
    -- SHA-256 of the request that came with a key or an id; NULL for a plain INSERT.
    fingerprint BLOB CHECK (fingerprint IS NULL OR typeof(fingerprint) = 'blob'),
    status TEXT NOT NULL DEFAULT 'pending' CHECK (
        status IN ('pending', 'processing', 'completed', 'dead_letter', 'skipped')
    ),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (typeof(attempts) = 'integer' AND attempts BETWEEN 0 AND 1000000),
    max_attempts INTEGER NOT NULL DEFAULT 10 CHECK (
        typeof(max_attempts) = 'integer' AND max_attempts BETWEEN 1 AND 100
    ),
    available_at INTEGER NOT NULL DEFAULT (
        CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
    ) CHECK (
        typeof(available_at) = 'integer' AND available_at BETWEEN -62135596800000000 AND 253402300799999999
    ),
    locked_at INTEGER CHECK (locked_at IS NULL OR typeof(locked_at) = 'integer'),
    lease_until INTEGER CHECK (lease_until IS NULL OR typeof(lease_until) = 'integer'),
    claim_no INTEGER NOT NULL DEFAULT 0 CHECK (typeof(claim_no) = 'integer' AND claim_no BETWEEN 0 AND 1000000000000000),
    deferred_since INTEGER CHECK (deferred_since IS NULL OR typeof(deferred_since) = 'integer'),
    requeues INTEGER NOT NULL DEFAULT 0 CHECK (typeof(requeues) = 'integer' AND requeues BETWEEN 0 AND 1000000000),
    created_at INTEGER NOT NULL DEFAULT (
        CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
    ) CHECK (typeof(created_at) = 'integer'),
    processed_at INTEGER CHECK (processed_at IS NULL OR typeof(processed_at) = 'integer'),
    dead_at INTEGER CHECK (dead_at IS NULL OR typeof(dead_at) = 'integer'),
    last_error TEXT,
    -- An instant that no client can read, or a number at its end, would fail every claim that meets it.
    CHECK (created_at BETWEEN -62135596800000000 AND 253402300799999999),
    CHECK (locked_at BETWEEN -62135596800000000 AND 253402300799999999),
    CHECK (lease_until BETWEEN -62135596800000000 AND 253402300799999999),
    CHECK (deferred_since BETWEEN -62135596800000000 AND 253402300799999999),
    CHECK (processed_at BETWEEN -62135596800000000 AND 253402300799999999),
    CHECK (dead_at BETWEEN -62135596800000000 AND 253402300799999999),
    CHECK ((processed_at IS NULL) = (status IN ('pending', 'processing'))),
    CHECK ((dead_at IS NOT NULL) = (status = 'dead_letter'))
);

-- The lanes: pending and processing events in the order in which they are claimed.
CREATE INDEX outbox_event_live ON outbox_event (event_type, target, available_at, id) WHERE processed_at IS NULL;

-- Dead letters of one type, and of all types.
CREATE INDEX outbox_event_dead ON outbox_event (event_type, dead_at, id) WHERE dead_at IS NOT NULL;
CREATE INDEX outbox_event_dead_newest ON outbox_event (dead_at, id) WHERE dead_at IS NOT NULL;

CREATE UNIQUE INDEX outbox_event_key ON outbox_event (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX outbox_event_subject ON outbox_event (subject, processed_at) WHERE subject IS NOT NULL;

-- Retention.
CREATE INDEX outbox_event_created ON outbox_event (created_at);

-- One line per attempt. The number repeats after a deferral or a requeue, the claim never does.
CREATE TABLE outbox_attempt (
    event_id TEXT NOT NULL,
    claim_no INTEGER NOT NULL,
    number INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    status_code INTEGER,
    error TEXT,
    response TEXT,
    PRIMARY KEY (event_id, claim_no)
) WITHOUT ROWID;

-- One row per run that is kept.
CREATE TABLE outbox_run (
    run_id TEXT NOT NULL PRIMARY KEY,
    "trigger" TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished')),
    report TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    lost_after INTEGER NOT NULL,
    idle INTEGER NOT NULL CHECK (idle IN (0, 1))
);

CREATE INDEX outbox_run_started ON outbox_run (started_at, run_id);

-- What instances must share and nobody else may know: the key that seals claim tokens.
CREATE TABLE outbox_secret (
    name TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
);
INSERT INTO outbox_secret (name, value) VALUES ('claim_token', randomblob(48));
