-- outbox: settle an event of an adopted table
-- ?1 id, ?2 fence, ?3 new status, ?4 attempts spent, ?5 delay in microseconds (NULL keeps the due time,
-- but for what tells the next claim apart), ?6 whether it also
-- waits for the lease's end, ?7 error text (NULL keeps the last one).
UPDATE {events}
SET {status} = CASE ?3
        WHEN 'pending' THEN {pending}
        WHEN 'dead_letter' THEN {dead_letter}
        WHEN 'skipped' THEN {skipped}
        ELSE {completed}
    END,
    {attempts} = min({spent} + ?4, {most_attempts}),
    {available_at} = {due_settled},
    {locked_at} = NULL{settle_rest}
WHERE {id} = ?1 AND {status} = {processing} AND {fence} = ?2
