-- outbox: reap by id in an adopted table
-- ?1 id.
UPDATE {events}
SET {status} = CASE WHEN {is_last_attempt} THEN {dead_letter} ELSE {pending} END,
    {attempts} = min({spent} + 1, {most_attempts}),
    {available_at} = {due_now},
    {locked_at} = NULL{take_back_rest}
WHERE {id} = ?1 AND {status} = {processing} AND {is_expired} AND {filter}
RETURNING {id_bytes}, {event_type}, {status_word}
