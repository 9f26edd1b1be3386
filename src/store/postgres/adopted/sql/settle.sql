-- outbox: settle events of an adopted table
-- Arrays with one place per settlement: $1 ids, $2 fences, $3 new statuses, $4 attempts spent, $5 delays in microseconds
-- (NULL keeps the due time), $6 whether it also waits for the lease's end, $7 error texts (NULL keeps the last one).
WITH held AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{id} = ANY ($1::text[]::{id_type}[])
      AND e.{status} = {processing}
      AND {fence} = ($2::bigint[])[array_position($1::text[], {id_text})]
    ORDER BY e.{id}
    FOR UPDATE
)
UPDATE {events} AS e
SET ({status}, {attempts}, {available_at}, {locked_at}{settle_columns}) = (
    SELECT CASE ($3::text[])[place]
               WHEN 'pending' THEN {pending}
               WHEN 'dead_letter' THEN {dead_letter}
               WHEN 'skipped' THEN {skipped}
               ELSE {completed}
           END,
           {spent} + ($4::integer[])[place],
           greatest(
               coalesce(
                   greatest(now() + ($5::bigint[])[place] * interval '1 microsecond',
                            CASE WHEN ($6::boolean[])[place] THEN e.{locked_at} {locked_at_zone} + {lease} END) {available_at_zone},
                   e.{available_at}),
               CASE WHEN ($3::text[])[place] = 'pending' THEN {not_before} END),
           NULL::timestamptz {locked_at_zone}{settle_values}
    FROM (SELECT array_position($1::text[], {id_text}) AS place) AS this)
WHERE e.{id} = ANY (ARRAY (SELECT held.id FROM held))
  AND e.{status} = {processing}
  AND {fence} = ($2::bigint[])[array_position($1::text[], {id_text})]
RETURNING {id_text} AS id, ($2::bigint[])[array_position($1::text[], {id_text})] AS claim_no
