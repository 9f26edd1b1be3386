-- outbox: lanes of an adopted table to count
-- $1 only types after this one, $2 lanes at most.
-- A skip scan for each status over the index that leads from it to the types.
SELECT now() AS as_of,
       ARRAY (
           SELECT lane.event_type
           FROM (
               SELECT found.event_type::text COLLATE "C" AS event_type FROM ({lanes_pending}) AS found
               UNION
               SELECT found.event_type::text COLLATE "C" FROM ({lanes_processing}) AS found
               UNION
               SELECT found.event_type::text COLLATE "C" FROM ({lanes_dead_letter}) AS found) AS lane
           WHERE lane.event_type > $1
           ORDER BY lane.event_type
           LIMIT $2) AS types
