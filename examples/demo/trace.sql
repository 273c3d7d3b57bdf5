-- One job that needed more than one attempt.
select jsonb_pretty(ujobs.inspect_job(id))
  from ujobs.jobs
 where name = 'settle' and state = 'done' and attempt > 1
 order by attempt desc, id
 limit 1;

-- The latest that failed for good.
select jsonb_pretty(ujobs.inspect_dead_letters(1) -> 0);
