-- outbox: claim from one lane of an adopted table
-- ?1 the type, ?2 events at most, ?3 the largest payload that is read.
UPDATE {events}
SET {status} = {processing}, {locked_at} = {claimed_at}{count_claim}
WHERE {key} IN (
    SELECT {key} FROM {events}
    WHERE {status} = {pending} AND {of_lane} AND {is_due} AND {id_is_sound} AND {filter}
    ORDER BY {order_by}, {id}
    LIMIT ?2
)
RETURNING {claimed_columns}, {payload_in_claim}, {payload_bytes}, {has_payload}, {why_never}, {now} - {available_us}
