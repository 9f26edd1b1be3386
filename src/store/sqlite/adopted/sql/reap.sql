-- outbox: reap in an adopted table
-- ?1 types, ?2 events at most.
UPDATE {events}
SET {status} = CASE WHEN {is_last_attempt} THEN {dead_letter} ELSE {pending} END,
    {attempts} = min({spent} + 1, {most_attempts}),
    {available_at} = {due_now},
    {locked_at} = NULL{take_back_rest}
WHERE {key} IN (
    SELECT {key} FROM {events}
    WHERE {status} = {processing} AND {is_expired} AND {of_types} AND {filter}
    ORDER BY {locked_at}
    LIMIT ?2
)
RETURNING {id_bytes}, {event_type}, {status_word}
