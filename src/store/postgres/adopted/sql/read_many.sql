-- outbox: read several events of an adopted table
-- $1 ids, $2 whether payloads are wanted.
SELECT {event_columns},
       CASE WHEN $2 AND octet_length({payload_text}) <= {max_payload_bytes} THEN {payload_text} END AS payload
FROM {events} AS e
WHERE e.{id} = ANY ($1::text[]::{id_type}[])
