-- outbox: settle
-- Arrays with one place per settlement: $1 ids in ascending order, $2 claim numbers, $3 new statuses, $4 attempts spent, $5 delays
-- in microseconds (NULL keeps the due time), $6 whether it also waits for the lease's end, $7 error texts (NULL keeps
-- the last one), $8 the chain of deferrals (clear, begin, keep), $9 attempt numbers (NULL writes no line), $10 durations,
-- $11 outcomes, $12 status codes, $13 errors, $14 responses.
WITH held AS MATERIALIZED (
    SELECT e.{id} AS id, e.{claim_no} AS claim_no, e.{locked_at} AS locked_at,
           width_bucket(e.{id}, $1::uuid[]) AS place
    FROM {events} AS e
    WHERE e.{id} = ANY ($1::uuid[])
      AND e.{status} = {processing}
      AND e.{claim_no} = ($2::bigint[])[width_bucket(e.{id}, $1::uuid[])]
    ORDER BY e.{id}
    FOR UPDATE
),
settled AS (
    UPDATE {events} AS e
    SET ({status}, {attempts}, {available_at}, {locked_at}, {lease_until}, {deferred_since}, {processed_at}, {dead_at},
         {last_error}) = (
        SELECT ($3::text[])[place],
               least(e.{attempts} + ($4::integer[])[place], {most_attempts}),
               coalesce(
                   greatest(now() + ($5::bigint[])[place] * interval '1 microsecond',
                            CASE WHEN ($6::boolean[])[place] THEN e.{lease_until} END),
                   e.{available_at}),
               NULL::timestamptz,
               NULL::timestamptz,
               CASE ($8::text[])[place]
                   WHEN 'begin' THEN coalesce(e.{deferred_since}, now())
                   WHEN 'keep' THEN e.{deferred_since}
               END,
               CASE WHEN ($3::text[])[place] <> {pending} THEN now() END,
               CASE WHEN ($3::text[])[place] = {dead_letter} THEN now() END,
               coalesce(($7::text[])[place], e.{last_error})
        FROM (SELECT width_bucket(e.{id}, $1::uuid[]) AS place) AS this)
    WHERE e.{id} = ANY (ARRAY (SELECT held.id FROM held))
      AND e.{status} = {processing}
      AND e.{claim_no} = ($2::bigint[])[width_bucket(e.{id}, $1::uuid[])]
    RETURNING e.{id} AS id, e.{claim_no} AS claim_no
),
logged AS (
    INSERT INTO {attempts_log} (event_id, claim_no, number, started_at, duration_ms, outcome, status_code, error, response)
    SELECT held.id, held.claim_no, ($9::integer[])[place], coalesce(held.locked_at, now()), ($10::bigint[])[place],
           ($11::text[])[place], ($12::integer[])[place], ($13::text[])[place], ($14::text[])[place]
    FROM held
    WHERE ($9::integer[])[place] IS NOT NULL AND held.id IN (SELECT settled.id FROM settled)
    ON CONFLICT DO NOTHING
)
SELECT settled.id, settled.claim_no FROM settled
