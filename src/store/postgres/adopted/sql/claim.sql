-- outbox: claim from an adopted table
-- $1 types, $2 allowances. As on our own table: picked in a MATERIALIZED CTE, so that no plan can claim more than the
-- allowance, and updated by an array of ids, so that no plan can join the whole table.
WITH picked AS MATERIALIZED (
    SELECT due.id
    FROM unnest($1::text[], $2::integer[]) AS lane (event_type, allowance)
    CROSS JOIN LATERAL (
        SELECT e.{id} AS id
        FROM {events} AS e
        WHERE e.{status} = {pending} AND {of_lane} AND {is_due} AND {filter}
        ORDER BY e.{order_by}
        LIMIT lane.allowance
        FOR UPDATE SKIP LOCKED) AS due
)
UPDATE {events} AS e
SET {status} = {processing}, {locked_at} = now() {locked_at_zone}{count_claim}
WHERE e.{id} = ANY (ARRAY (SELECT picked.id FROM picked)) AND e.{status} = {pending}
RETURNING {claimed_columns}
