{status} = {skipped}, {processed_at} = now(), {dead_at} = NULL, {last_error} = coalesce(nullif($2, ''), e.{last_error})
