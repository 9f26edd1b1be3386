-- outbox: claim from one lane of an adopted table
-- $1 the type, $2 events at most: a number that the planner sees, so that it walks an index which is in the lane's order
-- although other lanes' events stand in it too, instead of sorting all that is due.
WITH picked AS MATERIALIZED (
    SELECT e.{id} AS id
    FROM {events} AS e
    WHERE e.{status} = {pending} AND {of_one_lane} AND {is_due} AND {filter}
    ORDER BY e.{order_by}
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
UPDATE {events} AS e
SET {status} = {processing}, {locked_at} = now() {locked_at_zone}{count_claim}
WHERE e.{id} = ANY (ARRAY (SELECT picked.id FROM picked)) AND e.{status} = {pending}
RETURNING {claimed_columns}
