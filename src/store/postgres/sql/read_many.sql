-- outbox: read several events
-- $1 ids, $2 whether the payloads are wanted.
SELECT {event_columns},
       CASE WHEN $2 THEN {readable_payload} END AS payload
FROM {events} AS e
WHERE e.{id} = ANY ($1::uuid[])
