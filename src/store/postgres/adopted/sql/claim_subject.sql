-- outbox: claim one subject's events from an adopted table
-- $1 types, $2 the subject, $3 events at most.
WITH picked AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{status} = {pending} AND {event_type} = ANY ($1::text[]) AND {subject} = $2 AND {is_due} AND {filter}
    ORDER BY e.{order_by}
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)
UPDATE {events} AS e
SET {status} = {processing}, {locked_at} = now() {locked_at_zone}{count_claim}
WHERE e.{id} = ANY (ARRAY (SELECT picked.id FROM picked)) AND e.{status} = {pending}
RETURNING {claimed_columns}
