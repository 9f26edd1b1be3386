-- outbox: read payloads that a claim leaves out
-- $1 ids. A jsonb value can be small where it is stored and have no end when it is written out, so a claim does not read it.
SELECT {id_text} AS id, CASE WHEN octet_length({payload_text}) <= {max_payload_bytes} THEN {payload_text} END AS payload,
       octet_length({payload_text}) AS payload_bytes
FROM {events} AS e
WHERE e.{id} = ANY ($1::text[]::{id_type}[])
