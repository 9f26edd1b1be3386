-- outbox: in flight by subject in an adopted table
-- ?1 types (all when empty), ?2 subject.
SELECT {id_bytes}
FROM {events}
WHERE {status} IN ({pending}, {processing}) AND {subject} = ?2 AND (?1 = '[]' OR {of_types}) AND {filter}
LIMIT 10
