-- outbox: claim by id from an adopted table
-- ?1 id, ?3 the largest payload that is read.
UPDATE {events}
SET {status} = {processing}, {locked_at} = {claimed_at}{count_claim}
WHERE {key} IN (
    SELECT {key} FROM {events}
    WHERE {status} = {pending} AND {id} = ?1 AND NOT {is_untyped} AND {is_due} AND {id_is_sound} AND {filter}
)
RETURNING {claimed_columns}, {payload_in_claim}, {payload_bytes}, {has_payload}, {why_never}, {now} - {available_us}
