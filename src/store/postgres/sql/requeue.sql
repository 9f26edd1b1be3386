-- outbox: requeue
-- $1 id, $2 delay in microseconds, $3 attempts limit or NULL.
UPDATE {events} AS e
SET {status} = {pending},
    {attempts} = 0,
    {max_attempts} = coalesce($3, e.{max_attempts}),
    {available_at} = now() + $2::bigint * interval '1 microsecond',
    {deferred_since} = NULL,
    {processed_at} = NULL,
    {dead_at} = NULL,
    {requeues} = least(e.{requeues} + 1, {most_requeues})
WHERE e.{id} = $1 AND e.{status} = {dead_letter}
RETURNING {event_columns}
