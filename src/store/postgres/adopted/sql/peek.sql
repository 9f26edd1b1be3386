-- outbox: peek into an adopted table
-- $1 types.
SELECT coalesce(bool_or(EXISTS (
           SELECT 1 FROM {events} AS e
           WHERE e.{status} = {pending} AND {of_lane} AND {is_due} AND {filter})), false) AS claimable,
       min((SELECT min(e.{available_at}) FROM {events} AS e
            WHERE e.{status} = {pending} AND {of_lane} AND NOT {is_due} AND e.{available_at} < '9999-12-30'
             AND {filter}) {available_at_zone}) AS next_due_at
FROM unnest($1::text[]) AS lane (event_type)
