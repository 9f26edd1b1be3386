-- outbox: bury what nobody could ever claim
UPDATE {events}
SET {status} = {dead_letter}, {locked_at} = NULL{bury_rest}
WHERE {key} IN (SELECT {key} FROM {events} WHERE (({status} = {pending} AND {never_claimable}) OR ({status} = {processing} AND {is_untyped} AND {is_expired})) AND {filter} LIMIT 100)
RETURNING coalesce({id_bytes}, x''), {why_never}
