-- The outbox's own schema. It lives in the application's database, so nothing here touches anything outside it.

CREATE FUNCTION outbox.uuid_v7() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
    -- 48 bits of Unix milliseconds before the random bits of a version 4 id, whose version is raised from 0100 to 0111.
    SELECT encode(
        set_bit(set_bit(
            substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                || substring(uuid_send(gen_random_uuid()) FROM 7),
            52, 1), 53, 1),
        'hex')::uuid
$$;

CREATE TABLE outbox.event (
    id uuid PRIMARY KEY DEFAULT outbox.uuid_v7(),
    -- Every update of a row looks at its CHECKs again. Written with a bounded repetition ({1,200}), this pattern took half
    -- of the database's time; as it is, none that can be measured.
    event_type text COLLATE "C" NOT NULL
        CHECK (octet_length(event_type) BETWEEN 1 AND 200 AND event_type !~ '[^A-Za-z0-9._:/-]'),
    target text COLLATE "C" NOT NULL DEFAULT '',
    subject text CHECK (length(subject) <= 255),
    payload json NOT NULL,
    headers json NOT NULL DEFAULT '{}' CHECK (json_typeof(headers) = 'object'),
    idempotency_key text COLLATE "C" CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    fingerprint bytea,
    status text COLLATE "C" NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'processing', 'completed', 'dead_letter', 'skipped')),
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 1000000),
    max_attempts integer NOT NULL DEFAULT 10 CHECK (max_attempts BETWEEN 1 AND 100),
    available_at timestamptz NOT NULL DEFAULT now()
        CHECK (available_at >= '0001-01-01 00:00:00+00' AND available_at < '10000-01-01 00:00:00+00'),
    locked_at timestamptz,
    lease_until timestamptz,
    claim_no bigint NOT NULL DEFAULT 0 CHECK (claim_no BETWEEN 0 AND 1000000000000000),
    deferred_since timestamptz,
    requeues integer NOT NULL DEFAULT 0 CHECK (requeues BETWEEN 0 AND 1000000000),
    created_at timestamptz NOT NULL DEFAULT now(),
    processed_at timestamptz,
    dead_at timestamptz,
    last_error text,
    -- An instant that no client can read, or a number at its end, would fail every claim that meets it.
    CONSTRAINT event_instants_can_be_read CHECK (
        least(created_at, locked_at, lease_until, deferred_since, processed_at, dead_at) >= '0001-01-01 00:00:00+00'
        AND greatest(created_at, locked_at, lease_until, deferred_since, processed_at, dead_at)
            < '10000-01-01 00:00:00+00'),
    CONSTRAINT event_live_has_no_end CHECK ((processed_at IS NULL) = (status IN ('pending', 'processing'))),
    CONSTRAINT event_dead_has_its_time CHECK ((dead_at IS NOT NULL) = (status = 'dead_letter'))
) WITH (
    -- Room on each page, so that a claim is a HOT update.
    fillfactor = 50,
    -- A queue's rows die as fast as they come: vacuum by count, not by share of a large table, and without pauses.
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

-- Pending and processing events and nothing else. No column that a claim writes stands in any index, not even in a
-- predicate, so a claim writes no index.
CREATE INDEX event_live ON outbox.event (event_type, target, available_at, id) WHERE processed_at IS NULL;
CREATE INDEX event_dead ON outbox.event (dead_at, id) WHERE dead_at IS NOT NULL;
CREATE INDEX event_dead_by_type ON outbox.event (event_type, dead_at, id) WHERE dead_at IS NOT NULL;
CREATE UNIQUE INDEX event_idempotency_key ON outbox.event (idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Those who look for a subject's live events write "not processed" as this index does: spelled as a null test, it would
-- let a plan that was made on the empty table choose event_live and walk through every lane.
CREATE INDEX event_subject ON outbox.event (subject, (coalesce(processed_at, 'infinity'))) WHERE subject IS NOT NULL;
CREATE INDEX event_created_at ON outbox.event USING brin (created_at) WITH (pages_per_range = 32, autosummarize = on);

COMMENT ON TABLE outbox.event IS
    'Events to deliver. Insert event_type and payload in your own transaction; everything else has a default.';

CREATE TABLE outbox.attempt (
    event_id uuid NOT NULL,
    claim_no bigint NOT NULL,
    number integer NOT NULL,
    started_at timestamptz NOT NULL,
    duration_ms bigint NOT NULL,
    outcome text NOT NULL,
    status_code integer,
    error text,
    response text,
    PRIMARY KEY (event_id, claim_no)
);

CREATE TABLE outbox.run (
    run_id uuid PRIMARY KEY,
    trigger text NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    lost_after timestamptz NOT NULL,
    idle boolean NOT NULL,
    report json NOT NULL
);
CREATE INDEX run_started_at ON outbox.run (started_at, run_id);
-- Whether an idle run has been kept lately is asked by every idle run, also in a minute full of busy ones.
CREATE INDEX run_idle ON outbox.run (started_at) WHERE idle;

CREATE FUNCTION outbox.netstring(part text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT coalesce(octet_length(part) || ':' || part || ',', '-') $$;

-- What tells a replay from another request. The service computes the same bytes for requests over HTTP.
CREATE FUNCTION outbox.fingerprint(event_type text, payload json, subject text, due text, max_attempts integer, headers json)
RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT sha256(convert_to(
        outbox.netstring(event_type) || outbox.netstring(payload::text) || outbox.netstring(subject)
            || outbox.netstring(due) || outbox.netstring(max_attempts::text)
            || coalesce((
                SELECT string_agg(outbox.netstring(header.key) || outbox.netstring(header.value), ''
                                  ORDER BY header.key COLLATE "C")
                FROM json_each_text(headers) AS header), ''),
        'UTF8'))
$$;

CREATE FUNCTION outbox.enqueue(
    event_type text,
    payload json,
    subject text DEFAULT NULL,
    delay interval DEFAULT NULL,
    max_attempts integer DEFAULT 10,
    idempotency_key text DEFAULT NULL,
    headers json DEFAULT '{}',
    id uuid DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    delay_ms bigint := coalesce(extract(epoch FROM enqueue.delay) * 1000, 0)::bigint;
    print bytea;
    new_id uuid;
    known record;
BEGIN
    IF delay_ms < 0 THEN
        RAISE EXCEPTION 'outbox.enqueue: delay must not be negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue.idempotency_key IS NOT NULL OR enqueue.id IS NOT NULL THEN
        print := outbox.fingerprint(enqueue.event_type, enqueue.payload, enqueue.subject,
            CASE WHEN delay_ms = 0 THEN '' ELSE '+' || delay_ms END,
            coalesce(enqueue.max_attempts, 10), coalesce(enqueue.headers, '{}'));
    END IF;

    INSERT INTO outbox.event AS e
        (id, event_type, payload, subject, available_at, max_attempts, idempotency_key, headers, fingerprint)
    VALUES (
        coalesce(enqueue.id, outbox.uuid_v7()), enqueue.event_type, enqueue.payload, enqueue.subject,
        now() + delay_ms * interval '1 millisecond', coalesce(enqueue.max_attempts, 10), enqueue.idempotency_key,
        coalesce(enqueue.headers, '{}'), print)
    ON CONFLICT DO NOTHING
    RETURNING e.id INTO new_id;
    IF new_id IS NOT NULL THEN
        RETURN new_id;
    END IF;

    SELECT e.id, coalesce(e.fingerprint, outbox.fingerprint(e.event_type, e.payload, e.subject,
                CASE WHEN delay_ms = 0 THEN '' ELSE '+' || delay_ms END, e.max_attempts, e.headers)) AS fingerprint
    INTO known
    FROM outbox.event AS e
    WHERE e.idempotency_key = enqueue.idempotency_key OR e.id = enqueue.id
    ORDER BY (e.idempotency_key IS NOT DISTINCT FROM enqueue.idempotency_key) DESC
    LIMIT 1;
    IF known.fingerprint IS NOT DISTINCT FROM print THEN
        RETURN known.id;
    END IF;
    RAISE EXCEPTION 'outbox.enqueue: this idempotency key or id was used for other content'
        USING ERRCODE = 'unique_violation';
END
$$;

COMMENT ON FUNCTION outbox.enqueue IS
    'Enqueues one event in the caller''s transaction and returns its id; a replay returns the id that is there.';

-- `->>` raises on text that no database string can hold (\u0000, a lone surrogate): such a payload matches nothing.
CREATE FUNCTION outbox.payload_text(payload json, key text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE
AS $$
BEGIN
    RETURN payload ->> key;
EXCEPTION WHEN data_exception OR invalid_text_representation OR untranslatable_character THEN
    RETURN NULL;
END
$$;

CREATE FUNCTION outbox.in_flight(event_type text, key text, value text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT 1
        FROM outbox.event AS e
        WHERE e.processed_at IS NULL
          AND e.event_type = in_flight.event_type
          AND CASE WHEN position('\u' IN e.payload::text) = 0 THEN e.payload ->> in_flight.key
                   ELSE outbox.payload_text(e.payload, in_flight.key) END = in_flight.value)
$$;

COMMENT ON FUNCTION outbox.in_flight IS
    'Whether an event of this type whose payload has this key and value is pending or processing.';

-- What instances must share and nobody else may know: the key that seals claim tokens.
CREATE TABLE outbox.secret (
    name text PRIMARY KEY,
    value bytea NOT NULL
);
INSERT INTO outbox.secret (name, value)
VALUES ('claim_token', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
