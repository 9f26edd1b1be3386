matching AS (
    SELECT seen.id
    FROM seen
    WHERE (cardinality($1::text[]) = 0 OR seen.status = ANY ($1::text[]))
      AND (cardinality($2::text[]) = 0 OR seen.event_type = ANY ($2::text[]))
      AND ($3::text IS NULL OR seen.subject = $3)
      AND ($4::timestamptz IS NULL OR seen.created_at > $4)
      AND ($5::timestamptz IS NULL OR seen.created_at < $5)
      AND ($6::uuid IS NULL OR CASE WHEN $7::boolean THEN seen.id > $6 ELSE seen.id < $6 END)
    ORDER BY CASE WHEN $7::boolean THEN seen.id END, CASE WHEN NOT $7::boolean THEN seen.id END DESC
    LIMIT $8
)
SELECT ARRAY (
           SELECT matching.id
           FROM matching
           ORDER BY CASE WHEN $7::boolean THEN matching.id END, CASE WHEN NOT $7::boolean THEN matching.id END DESC
       ) AS ids,
       (SELECT count(*) FROM seen) AS looked_at,
       (SELECT seen.id
        FROM seen
        ORDER BY CASE WHEN $7::boolean THEN seen.id END DESC, CASE WHEN NOT $7::boolean THEN seen.id END
        LIMIT 1) AS last_id
