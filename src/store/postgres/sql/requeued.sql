{status} = {pending},
    {attempts} = 0,
    {deferred_since} = NULL,
    {processed_at} = NULL,
    {dead_at} = NULL,
    {requeues} = least(e.{requeues} + 1, {most_requeues})
