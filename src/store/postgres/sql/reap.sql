-- outbox: reap
-- $1 types, $2 and $3 the place in each lane behind which to look, $4 events to look at in each lane.
-- Leases stand at the front of their lane, because they were claimed before what is still pending: no lease index.
WITH page AS MATERIALIZED (
    SELECT lane.event_type, front.*
    FROM unnest($1::text[], $2::timestamptz[], $3::uuid[]) AS lane (event_type, after_at, after_id)
    CROSS JOIN LATERAL (
        SELECT e.{id} AS id,
               e.{available_at} AS available_at,
               e.{status} = {processing} AS claimed,
               e.{status} = {processing} AND coalesce(e.{lease_until} < now(), true) AS expired
        FROM {events} AS e
        WHERE e.{processed_at} IS NULL AND e.{event_type} = lane.event_type AND e.{target} = ''
          AND e.{available_at} <= now()
          AND (e.{available_at}, e.{id}) > (lane.after_at, lane.after_id)
        ORDER BY e.{available_at}, e.{id}
        LIMIT $4) AS front
),
held AS MATERIALIZED (
    SELECT e.{id} AS id, e.{claim_no} AS claim_no, e.{attempts} AS attempts, e.{locked_at} AS locked_at
    FROM {events} AS e
    WHERE e.{id} = ANY (ARRAY (SELECT page.id FROM page WHERE page.expired))
      AND e.{status} = {processing}
      AND coalesce(e.{lease_until} < now(), true)
    ORDER BY e.{id}
    FOR UPDATE SKIP LOCKED
),
{take_back},
ends AS (
    SELECT DISTINCT ON (page.event_type)
           page.event_type, page.available_at, page.id, page.claimed,
           count(*) OVER (PARTITION BY page.event_type) AS seen
    FROM page
    ORDER BY page.event_type, page.available_at DESC, page.id DESC
)
SELECT taken.id, taken.event_type, taken.status, NULL::timestamptz AS end_at
FROM taken
UNION ALL
SELECT ends.id, ends.event_type, NULL, ends.available_at
FROM ends
WHERE ends.claimed AND ends.seen = $4
