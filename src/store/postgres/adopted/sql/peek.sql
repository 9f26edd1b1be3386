-- outbox: peek into an adopted table
-- $1 types. A lane's first event by due time tells whether any of it is due.
SELECT coalesce(bool_or((
           SELECT {is_due} FROM {events} AS e
           WHERE e.{status} = {pending} AND {of_lane} AND {filter}
           ORDER BY e.{available_at}
           LIMIT 1)), false) AS claimable,
       min((SELECT min(e.{available_at}) FROM {events} AS e
            WHERE e.{status} = {pending} AND {of_lane} AND NOT {is_due} AND e.{available_at} < '9999-12-30'
              AND {filter}) {available_at_zone}) AS next_due_at
FROM unnest($1::text[]) AS lane (event_type)
