-- outbox: list events of an adopted table, rising ids
-- ?1 statuses and ?2 types (all when empty), ?3 subject, ?4 and ?5 instants between which it was created, ?6 the id behind
-- which to go on, each or NULL; ?7 rows to look at. Ids never change, and an index leads along them.
SELECT {id_bytes},
    coalesce({filter}
        AND (?1 = '[]' OR {status_word} IN (SELECT value FROM json_each(?1)))
        AND (?2 = '[]' OR {type_column} IN (SELECT value FROM json_each(?2)))
        AND (?3 IS NULL OR {subject} = ?3)
        AND (?4 IS NULL OR {created_us} > ?4)
        AND (?5 IS NULL OR {created_us} < ?5), 0)
FROM {events}
WHERE {id} > coalesce(?6, {least_id}) AND {id_is_sound}
ORDER BY {id}
LIMIT ?7
