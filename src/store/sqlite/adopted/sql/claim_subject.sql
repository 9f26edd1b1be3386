-- outbox: claim one subject's events from an adopted table
-- ?1 types, ?2 the subject, ?3 the largest payload that is read, ?4 events at most.
UPDATE {events}
SET {status} = {processing}, {locked_at} = {claimed_at}{count_claim}
WHERE {key} IN (
    SELECT {key} FROM {events}
    WHERE {status} = {pending} AND {of_types} AND {subject} = ?2 AND {is_due} AND {id_is_sound} AND {filter}
    ORDER BY {order_by}, {id}
    LIMIT ?4
)
RETURNING {claimed_columns}, {payload_in_claim}, {payload_bytes}, {has_payload}, {why_never}, {now} - {available_us}
