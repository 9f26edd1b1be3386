-- outbox: find dead letters of an adopted table
-- ?1 types (all when empty), ?2 subject, ?3 text of the error, ?4 and ?5 instants between which they died, ?6 the id behind
-- which to go on, each or NULL; ?7 rows to look at. In the order of the ids.
SELECT {id_bytes},
    coalesce({filter}
        AND (?1 = '[]' OR {type_column} IN (SELECT value FROM json_each(?1)))
        AND (?2 IS NULL OR {subject} = ?2)
        AND (?3 IS NULL OR instr({last_error}, ?3) > 0)
        AND (?4 IS NULL OR {dead_us} > ?4)
        AND (?5 IS NULL OR {dead_us} < ?5), 0)
FROM {events}
WHERE {status} = {dead_letter} AND {id} > coalesce(?6, {least_id}) AND {id_is_sound}
ORDER BY {id}
LIMIT ?7
