-- outbox: the present instant
SELECT {now}
