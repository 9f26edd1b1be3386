-- outbox: purge an adopted table
-- ?1 rows, ?2 and ?3 ages as before. Dead letters and live events never match.
DELETE FROM {events}
WHERE {key} IN (SELECT value FROM json_each(?1))
    AND (({status} = {completed} AND {ended_us} < {now} - ?2) OR ({has_skipped} AND {status} = {skipped} AND {ended_us} < {now} - ?3))
    AND {filter}
RETURNING {id_text}
