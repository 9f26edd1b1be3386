-- outbox: list dead letters of an adopted table
-- ?1 types (all when empty), ?2 subject or NULL, ?3 text of the error or NULL, ?4 and ?5 the place behind which to go on,
-- ?6 dead letters at most, ?7 the largest payload that is read; -1 for none.
SELECT {event_columns}, {payload_in_list}
FROM {events}
WHERE {status} = {dead_letter} AND {id_is_sound}
    AND (?1 = '[]' OR {of_types})
    AND (?2 IS NULL OR {subject} = ?2)
    AND (?3 IS NULL OR instr({last_error}, ?3) > 0)
    AND ({dead_us}, {id_text}) < (?4, ?5)
    AND {filter}
ORDER BY {dead_us} DESC, {id_text} DESC
LIMIT ?6
