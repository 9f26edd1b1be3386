-- outbox: find what nobody could ever claim
-- A row without a type has no lane. Only read, for mostly there is none.
SELECT {has_never}
