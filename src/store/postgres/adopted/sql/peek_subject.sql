-- outbox: peek at one subject's events in an adopted table
-- $1 types, $2 the subject.
SELECT coalesce(bool_or({is_due}), false) AS claimable,
       min(e.{available_at}) FILTER (WHERE NOT {is_due} AND e.{available_at} < '9999-12-30') {available_at_zone} AS next_due_at
FROM {events} AS e
WHERE e.{status} = {pending} AND {event_type} = ANY ($1::text[]) AND {subject} = $2 AND {filter}
