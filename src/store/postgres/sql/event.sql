-- outbox: read one event
-- $1 id, $2 whether the payload is wanted.
SELECT {event_columns},
       CASE WHEN $2 THEN {readable_payload} END AS payload
FROM {events} AS e
WHERE e.{id} = $1
