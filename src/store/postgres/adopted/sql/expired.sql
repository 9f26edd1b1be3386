-- outbox: find expired claims in an adopted table
-- $1 types, $2 events at most.
SELECT {id_text} AS id
FROM {events} AS e
WHERE e.{status} = {processing} AND {is_expired} AND {event_type} = ANY ($1::text[]) AND {filter}
ORDER BY e.{locked_at}
LIMIT $2
