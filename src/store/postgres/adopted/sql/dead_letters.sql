-- outbox: list dead letters of an adopted table
-- $1 types (all when empty), $2 subject or NULL, $3 text of the error or NULL, $4 and $5 the place behind which to go on,
-- $6 dead letters at most, $7 whether payloads are wanted.
SELECT {event_columns},
       CASE WHEN $7 AND octet_length({payload_text}) <= {max_payload_bytes} THEN {payload_text} END AS payload
FROM {events} AS e
WHERE e.{status} = {dead_letter}
  AND (cardinality($1::text[]) = 0 OR {event_type} = ANY ($1::text[]))
  AND ($2::text IS NULL OR {subject} = $2)
  AND ($3::text IS NULL OR position($3 IN {last_error}) > 0)
  AND ({dead_at}, {id_text} COLLATE "C") < ($4::timestamptz, $5::text)
  AND {filter}
ORDER BY {dead_at} DESC, {id_text} COLLATE "C" DESC
LIMIT $6
