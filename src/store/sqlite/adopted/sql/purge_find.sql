-- outbox: find what may go from an adopted table
-- ?1 and ?2 ages in microseconds of completed and skipped events, ?3 events at most. Runs as a reader.
SELECT CAST({key} AS TEXT)
FROM {events}
WHERE (({status} = {completed} AND {ended_us} < {now} - ?1) OR ({has_skipped} AND {status} = {skipped} AND {ended_us} < {now} - ?2))
    AND {filter}
LIMIT ?3
