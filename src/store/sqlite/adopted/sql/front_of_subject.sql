-- outbox: survey one subject's events of a lane of an adopted table
-- ?1 the type, ?2 the subject.
SELECT
    EXISTS (
        SELECT 1 FROM {events}
        WHERE {status} = {pending} AND {of_lane} AND {subject} = ?2 AND {is_due} AND {id_is_sound} AND {filter}
    ),
    (
        SELECT {available_us} FROM {events}
        WHERE {status} = {pending} AND {of_lane} AND {subject} = ?2 AND {is_later} AND NOT {is_due} AND {filter}
        ORDER BY {available_at} LIMIT 1
    )
