-- outbox: in flight by a key of the payload in an adopted table
-- ?1 types (all when empty), ?2 the largest payload that is read. The values are compared outside.
SELECT {id_text}, {payload_within}
FROM {events}
WHERE {status} IN ({pending}, {processing}) AND {id_is_sound} AND (?1 = '[]' OR {of_types}) AND {filter}
