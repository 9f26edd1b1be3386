-- outbox: find what nobody could ever claim
-- A row without a type has no lane, and one without an instant is never due. Only read, for mostly there is none.
SELECT EXISTS (SELECT 1 FROM {events} WHERE (({status} = {pending} AND {never_claimable}) OR ({status} = {processing} AND {is_untyped} AND {is_expired})) AND {filter})
