-- The proof, from the tables alone.  Every line compares what must be with
-- what is; one that differs fails the whole.
--
-- processed: the number of transactions that pgbench says it ran.

create temp table claim (
    n int generated always as identity,
    what text not null,
    must numeric,
    actual numeric,
    shown text                  -- instead of actual, where that is a yes or no
);

-- What became of each number that was drawn.
create temp table fate as
select transfer, ledger.transfer is not null as committed,
       demo.is_hopeless(transfer) as hopeless, demo.stumbles(transfer) as stumbles
  from generate_series(1, (select last_value from demo.transfer_id)) as transfer
  left join demo.ledger using (transfer);

create temp table job as
select *, (input ->> 'transfer')::bigint as transfer from ujobs.jobs where name = 'settle';

create temp table settlement as
select transfer, count(*) as times, max(attempt) as attempt, sum(fee) as fee from demo.settled group by transfer;
analyze fate, job, settlement;

-- Transfers
insert into claim (what, must, actual)
select 'every transaction that pgbench ran drew a number', :processed, count(*) from fate;
insert into claim (what, must, actual)
select 'committed transfers have one job each', count(*), (select count(distinct transfer) from job join fate using (transfer) where committed)
  from fate where committed;
insert into claim (what, must, actual)
select 'there are no other jobs', (select count(*) from fate where committed), count(*) from job;
insert into claim (what, must, actual)
select format('none of the %s rolled-back transfers has a job or a settlement', count(*)), 0,
       count(*) filter (where exists (select from job where job.transfer = fate.transfer)
                           or exists (select from settlement where settlement.transfer = fate.transfer))
  from fate where not committed;
insert into claim (what, must, actual, shown)
select 'their share lies between 0.05 and 0.15', 1,
       (avg((not committed)::int) between 0.05 and 0.15)::int, round(avg((not committed)::int), 3)
  from fate;

-- Settlements
insert into claim (what, must, actual)
select 'committed transfers settled exactly once, but for the hopeless', count(*),
       count(*) filter (where times = 1)
  from fate left join settlement using (transfer) where committed and not hopeless;
insert into claim (what, must, actual)
select 'hopeless transfers settled', 0, count(*) from fate join settlement using (transfer) where hopeless;
insert into claim (what, must, actual)
select 'their jobs are done, nothing is left in the queue', (select count(*) from fate where committed and not hopeless),
       count(*) filter (where state = 'done') from job where state <> 'dead';

-- Retries
insert into claim (what, must, actual)
select 'those that stumbled took one attempt more for each', count(*), count(*) filter (where job.attempt = stumbles + 1)
  from fate join job using (transfer) where committed and not hopeless and stumbles > 0;
insert into claim (what, must, actual, shown)
select 'some did stumble, and were settled in the end', 1, (count(*) > 0)::int, count(*) from job where state = 'done' and attempt > 1;
insert into claim (what, must, actual)
select 'those that did not took one', count(*), count(*) filter (where job.attempt = 1)
  from fate join job using (transfer) where committed and not hopeless and stumbles = 0;
insert into claim (what, must, actual)
select 'and all waited at least what the policy asks (0.5 s, 1 s, 2 s)', count(*),
       count(*) filter (where finished_at - created_at >= delay * interval '1 ms')
  from job
 cross join lateral (select sum(ms) as delay
                       from unnest(ujobs.retry_schedule('{"attempts": 4, "backoff": "exponential", "delay": "500ms"}'))
                            with ordinality as schedule (ms, n)
                      where n < attempt) as policy
 where attempt > 1;

-- Dead letters
insert into claim (what, must, actual)
select 'the hopeless are dead letters after four attempts', count(*),
       count(*) filter (where job.state = 'dead' and job.attempt = 4)
  from fate join job using (transfer) where committed and hopeless;
insert into claim (what, must, actual)
select 'there are some, and no other dead letters', (select count(*) from fate where committed and hopeless), count(*)
  from ujobs.dead_letters;
insert into claim (what, must, actual)
select 'each with its error', count(*),
       count(*) filter (where last_error ->> 'sqlstate' = 'UJ022'
                          and last_error #>> '{cause,sqlstate}' = 'BK001'
                          and last_error #>> '{cause,message}' ~ '^account \d+ is frozen$')
  from job where state = 'dead';

-- Money
insert into claim (what, must, actual)
select 'accounts hold the transfers less the fees',
       (select sum(delta) from demo.ledger) - (select sum(fee) from settlement), sum(abalance) from pgbench_accounts;
insert into claim (what, must, actual)
select 'branches hold the transfers and the fees',
       (select sum(delta) from demo.ledger) + (select sum(fee) from settlement), sum(bbalance) from pgbench_branches;
insert into claim (what, must, actual)
select 'tellers hold the transfers', (select sum(delta) from demo.ledger), sum(tbalance) from pgbench_tellers;
insert into claim (what, must, actual)
select 'results name the fees that were taken', (select sum(fee) from settlement), sum((result ->> 'fee')::int) from job;

-- The store
insert into claim (what, must, actual)
select 'invariants of the store that do not hold (ujobs.check)', 0, count(*) from ujobs.check();

select format('%s - %s%s', case when must is not distinct from actual then 'ok' else 'not ok' end, what,
              case when must is not distinct from actual then format(': %s', coalesce(shown, actual::text))
                   else format(': must be %s, is %s', must, concat_ws(': ', actual, shown)) end)
  from claim order by n;

do $$
begin
    if exists (select from claim where must is distinct from actual) then
        raise exception 'the proof fails';
    end if;
end
$$;
