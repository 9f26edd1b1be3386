-- outbox: read one event of an adopted table
-- $1 id, $2 whether the payload is wanted.
SELECT {event_columns},
       CASE WHEN $2 AND octet_length({payload_text}) <= {max_payload_bytes} THEN {payload_text} END AS payload
FROM {events} AS e
WHERE e.{id} = $1::text::{id_type} AND {filter}
