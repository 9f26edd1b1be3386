taken AS (
    UPDATE {events} AS e
    SET {status} = CASE WHEN e.{attempts} + 1 >= e.{max_attempts} THEN {dead_letter} ELSE {pending} END,
        {attempts} = least(e.{attempts} + 1, {most_attempts}),
        {available_at} = now(),
        {locked_at} = NULL,
        {lease_until} = NULL,
        {deferred_since} = NULL,
        {processed_at} = CASE WHEN e.{attempts} + 1 >= e.{max_attempts} THEN now() END,
        {dead_at} = CASE WHEN e.{attempts} + 1 >= e.{max_attempts} THEN now() END,
        {last_error} = 'claim expired'
    WHERE e.{id} = ANY (ARRAY (SELECT held.id FROM held))
      AND e.{status} = {processing}
      AND coalesce(e.{lease_until} < now(), true)
    RETURNING e.{id} AS id, e.{event_type} AS event_type, e.{status} AS status
),
logged AS (
    INSERT INTO {attempts_log} (event_id, claim_no, number, started_at, duration_ms, outcome, error)
    SELECT held.id, held.claim_no, held.attempts + 1, coalesce(held.locked_at, now()),
           coalesce(greatest(extract(epoch FROM now() - held.locked_at) * 1000, 0), 0)::bigint, 'expired', 'claim expired'
    FROM held
    WHERE held.id IN (SELECT taken.id FROM taken)
    ON CONFLICT DO NOTHING
)
