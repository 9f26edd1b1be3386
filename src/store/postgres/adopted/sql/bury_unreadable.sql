-- outbox: bury what nobody could ever claim
-- A row without a type has no lane, and one without an instant is never due.
UPDATE {events} AS e
SET {status} = {dead_letter}, {locked_at} = NULL{bury_rest}
WHERE e.{id} = ANY (ARRAY (
        SELECT e.{id} FROM {events} AS e
        WHERE (e.{status} = {pending} AND ({never_claimable}) OR e.{status} = {processing} AND {is_expired} AND {is_untyped})
          AND {filter}
        LIMIT 100
        FOR UPDATE SKIP LOCKED))
  AND e.{status} IN ({pending}, {processing})
RETURNING {id_text} AS id
