UPDATE {events} AS e
SET {status} = CASE WHEN {is_last_attempt} THEN {dead_letter} ELSE {pending} END,
    {attempts} = {spent} + 1,
    {available_at} = now() {available_at_zone},
    {locked_at} = NULL{take_back_rest}
WHERE e.{id} = ANY (ARRAY (SELECT held.id FROM held)) AND e.{status} = {processing} AND {is_expired}
RETURNING {id_text} AS id, {event_type} AS event_type, {status_word} AS status
