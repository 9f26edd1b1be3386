-- outbox: survey one lane of an adopted table
-- ?1 the type.
SELECT
    EXISTS (
        SELECT 1 FROM {events}
        WHERE {status} = {pending} AND {of_lane} AND {is_due} AND {id_is_sound} AND {filter}
    ),
    (
        SELECT {available_us} FROM {events}
        WHERE {status} = {pending} AND {of_lane} AND {is_later} AND NOT {is_due} AND {filter}
        ORDER BY {available_at} LIMIT 1
    ),
    -- A row without an instant is never due.
    {has_never_in_lane}
